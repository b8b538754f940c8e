//go:build unix

package journal_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/value"
)

// BenchmarkFsync is the rate that the disk itself gives: what the other figures
// are to be read beside.
func BenchmarkFsync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	for i := 0; b.Loop(); i++ {
		if _, err := f.WriteAt(page, int64(i)*4096); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

var (
	intent  = value.MustParse(`{"step":"step-17","attempt":1,"tool":"crm.lookup","args":{"customer":"c-20391","fields":["name","status"]}}`)
	outcome = value.MustParse(`{"step":"step-17","attempt":1,"outcome":"ok","output":{"name":"Ada Lovelace","status":"active"}}`)
)

// BenchmarkRuns is 500 runs at once of 10 read-only steps each: an intent that
// is deferred and an outcome that is waited for.
func BenchmarkRuns(b *testing.B) {
	s := newStore(b)
	b.ReportAllocs()
	const runs, steps = 500, 10
	before, cpu := s.Stats(), cpuTime(b)
	for b.Loop() {
		var wg sync.WaitGroup
		for range runs {
			wg.Go(func() { oneRun(b, s, steps, true) })
		}
		wg.Wait()
	}
	after := s.Stats()
	total := float64(b.N * runs * steps)
	b.ReportMetric(total/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(float64(after.Records-before.Records)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(after.Syncs-before.Syncs)/total, "syncs/step")
	b.ReportMetric((cpuTime(b)-cpu).Seconds()*1e6/total, "cpu-µs/step")
}

// BenchmarkLoneChain is one run, one step after the other.
func BenchmarkLoneChain(b *testing.B) {
	for _, c := range []struct {
		name     string
		readOnly bool
	}{{"effects", false}, {"readonly", true}} {
		b.Run(c.name, func(b *testing.B) {
			s := newStore(b)
			r := create(b, s, journal.Start{})
			before := s.Stats()
			for b.Loop() {
				step(b, r, c.readOnly)
			}
			b.ReportMetric(float64(s.Stats().Syncs-before.Syncs)/float64(b.N), "syncs/step")
		})
	}
}

// BenchmarkStored is a step of a short run while many runs are stored, and
// BenchmarkLength one of a run that is long already: neither should matter.
func BenchmarkStored(b *testing.B) {
	for _, stored := range []int{10, 100_000} {
		b.Run(strconv.Itoa(stored), func(b *testing.B) {
			s := newStore(b)
			var wg sync.WaitGroup
			for i := range stored {
				r := create(b, s, journal.Start{Tools: []string{"crm.lookup"}})
				for range 5 {
					r.Append(journal.Record{Kind: "outcome", Body: outcome, Deferred: true})
				}
				wg.Go(func() {
					if err := r.Close(); err != nil {
						b.Error(err)
					}
				})
				if i%100 == 99 {
					wg.Wait()
				}
			}
			wg.Wait()
			b.Run("step", func(b *testing.B) {
				for b.Loop() {
					oneRun(b, s, 10, true)
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(10*b.N), "µs/step")
			})
			b.Run("list", func(b *testing.B) {
				for b.Loop() {
					list, err := s.Runs(b.Context(), journal.Filter{Status: "running", Limit: 10})
					if err != nil || len(list) != 10 {
						b.Fatal(len(list), err)
					}
				}
			})
			b.Run("listByTool", func(b *testing.B) {
				for b.Loop() {
					list, err := s.Runs(b.Context(), journal.Filter{Tool: "crm.lookup", Limit: 10})
					if err != nil || len(list) != 10 {
						b.Fatal(len(list), err)
					}
				}
			})
		})
	}
}

func BenchmarkLength(b *testing.B) {
	for _, records := range []int{10, 100_000} {
		b.Run(strconv.Itoa(records), func(b *testing.B) {
			s := newStore(b)
			r := create(b, s, journal.Start{})
			for range records {
				r.Append(journal.Record{Kind: "outcome", Body: outcome, Deferred: true})
			}
			appendWait(b, r, record("event", `1`))
			for b.Loop() {
				step(b, r, true)
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	s := newStore(b)
	r := create(b, s, journal.Start{})
	for range 1000 {
		r.Append(journal.Record{Kind: "outcome", Body: outcome, Deferred: true})
	}
	appendWait(b, r, record("event", `1`))
	text := export(b, s, r.ID())
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if report := verify(b, text, journal.Trust{}); !report.OK() {
			b.Fatal(report.Faults)
		}
	}
}

func step(b *testing.B, r *journal.Run, readOnly bool) {
	t := r.Append(journal.Record{Kind: "intent", Body: intent, Deferred: readOnly})
	if !readOnly {
		if err := t.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.AppendWait(b.Context(), journal.Record{Kind: "outcome", Body: outcome}); err != nil {
		b.Fatal(err)
	}
}

// cpuTime is what the process has used, in user and system mode.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func oneRun(b *testing.B, s *journal.Store, steps int, readOnly bool) {
	ctx := context.Background()
	r, err := s.Create(ctx, journal.Start{Kind: "plan", Tools: []string{"crm.lookup"}})
	if err != nil {
		b.Error(err)
		return
	}
	for range steps {
		step(b, r, readOnly)
	}
	if _, err := r.Finish(ctx, journal.Record{Kind: "end", Body: outcome, Status: "ok"}); err != nil {
		b.Error(err)
	}
	if err := r.Close(); err != nil {
		b.Error(err)
	}
}
