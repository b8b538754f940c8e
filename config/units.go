package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/callsheet/callsheet/value"
)

// A Duration is written with its unit: "10s", "1m30s", "24h", "7d".
type Duration time.Duration

var errDuration = errors.New(`write a duration with its unit, as in "500ms", "10s", "5m", "24h" or "7d"`)

func (d *Duration) set(v value.Value) error {
	s, ok := v.Text()
	if !ok {
		return errDuration
	}
	return d.UnmarshalText([]byte(s))
}

// UnmarshalText reads a duration as it is written in a configuration, for flags.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return errDuration
		}
		*d = Duration(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil || s == "0" {
		return errDuration
	}
	if parsed < 0 {
		return errors.New("a duration cannot be negative")
	}
	*d = Duration(parsed)
	return nil
}

func (*Duration) schema() string {
	return `{"type":"string","pattern":"^([0-9]+d|([0-9]+(\\.[0-9]*)?(ns|us|µs|ms|s|m|h))+)$","examples":["10s","5m","24h","7d"]}`
}

// A Size is a number of bytes, written with its unit: "512B", "64KiB", "16MiB",
// "1GiB", or in powers of ten "64kB", "16MB", "1GB".
type Size int

var errSize = errors.New(`write a size with its unit, as in "512B", "64KiB" or "16MiB"`)

var sizeUnits = []struct {
	suffix string
	bytes  uint64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

func (z *Size) set(v value.Value) error {
	s, ok := v.Text()
	if !ok {
		return errSize
	}
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(digits, " "), 10, 64)
		if err != nil {
			return errSize
		}
		if n == 0 || n > math.MaxInt/u.bytes {
			return errors.New("a size is at least 1B and at most what memory can hold")
		}
		*z = Size(n * u.bytes)
		return nil
	}
	return errSize
}

func (*Size) schema() string {
	return `{"type":"string","pattern":"^[0-9]+ ?([KMG]iB|[kMG]?B)$","examples":["512B","64KiB","16MiB"]}`
}

// A Rate is how often a call may begin, written as a number over a unit of
// time: "10/s", "30/m", "5/h". It is kept as the time between two beginnings.
type Rate time.Duration

var errRate = errors.New(`write a rate as calls over a unit of time, as in "10/s", "30/m" or "5/h"`)

func (r *Rate) set(v value.Value) error {
	s, _ := v.Text()
	count, unit, ok := strings.Cut(s, "/")
	n, err := strconv.ParseUint(count, 10, 31)
	per := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	if !ok || err != nil || n == 0 || per == 0 {
		return errRate
	}
	*r = Rate(per / time.Duration(n))
	return nil
}

func (*Rate) schema() string {
	return `{"type":"string","pattern":"^[1-9][0-9]*/[smh]$","examples":["10/s","30/m"]}`
}
