package transport

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for h, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-7": 0, "soon": 0, "1.5": 0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:03:05 GMT": 0,
		"9223372036854775807":           9223372036 * time.Second,
	} {
		if got := retryAfter(h, now); got != want {
			t.Errorf("%q: got %v, want %v", h, got, want)
		}
	}
}

func TestEvents(t *testing.T) {
	const stream = ": comment\r\nevent: x\r\ndata: one\r\n\r\ndata:two\ndata: more\n\n\n\ndata: end\n\ndata: never\n\n"
	var got []string
	err := Events(strings.NewReader(stream), func(data []byte) (bool, error) {
		got = append(got, string(data))
		return string(data) == "end", nil
	})
	if want := "one|two\nmore|end"; err != nil || strings.Join(got, "|") != want {
		t.Errorf("got %q, %v, want %s", got, err, want)
	}
	if err := Events(strings.NewReader("data: one\n\n"), func([]byte) (bool, error) { return false, nil }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a stream without an end: %v", err)
	}
}

func TestExplanation(t *testing.T) {
	for text, want := range map[string]string{
		`{"error":"plain"}`: " plain",
		`{"error":{"code":"c","type":"t","message":"m"}}`:  "c m",
		`{"error":{"type":"t","message":"m"}}`:             "t m",
		`{"error":{"code":503,"message":"m"}}`:             "503 m",
		`{"error":{"code":null,"type":"t","message":"m"}}`: "t m",
		`{"error":{"message":["odd"]}}`:                    ` {"message":["odd"]}`,
		`{"other":1}`:                                      " ",
		`<html>`:                                           " ",
	} {
		if code, message := Explanation([]byte(text)); code+" "+message != want {
			t.Errorf("%s: got %q %q, want %q", text, code, message, want)
		}
	}
}
