package journal_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

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
	for b.Loop() {
		var wg sync.WaitGroup
		for range runs {
			wg.Go(func() { oneRun(b, s, steps, true) })
		}
		wg.Wait()
	}
	perOp := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(runs*steps/perOp, "steps/s")
	b.ReportMetric(runs*(2*steps+3)/perOp, "records/s")
}

func oneRun(b *testing.B, s *journal.Store, steps int, readOnly bool) {
	ctx := context.Background()
	r, err := s.Create(ctx, journal.Start{Kind: "plan", Tools: []string{"crm.lookup"}})
	if err != nil {
		b.Error(err)
		return
	}
	for range steps {
		t := r.Append(journal.Record{Kind: "intent", Body: intent, Deferred: readOnly})
		if !readOnly {
			err = t.Wait(ctx)
		}
		if err == nil {
			err = r.AppendWait(ctx, journal.Record{Kind: "outcome", Body: outcome})
		}
		if err != nil {
			b.Error(err)
			return
		}
	}
	if _, err := r.Finish(ctx, journal.Record{Kind: "end", Body: outcome, Status: "ok"}); err != nil {
		b.Error(err)
	}
	if err := r.Close(); err != nil {
		b.Error(err)
	}
}
