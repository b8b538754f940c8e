package dbos

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	_ "github.com/dbos-inc/dbos-transact-golang/dbos/driver/sqlite"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

const (
	plans = 500
	steps = 10
)

// A side runs all plans at once and returns when every step of them is stored.
type side func() error

// BenchmarkDurable runs 500 plans of 10 steps that do nothing, all at once, on
// each side in turn. DBOS is measured as it comes, where a commit is not synced
// (synchronous=NORMAL: a power cut may take the last steps back), and with the
// durability that Callsheet has (synchronous=FULL). Each figure is the best of
// the iterations, because what else the machine does only ever slows a side down.
func BenchmarkDurable(b *testing.B) {
	dir := b.TempDir()
	disk := filepath.Join(dir, "raw")
	ours, asItComes, full := callsheet(b, dir), transact(b, dbos.Config{DatabaseURL: "sqlite:" + filepath.Join(dir, "dbos.db")}),
		transact(b, dbos.Config{SQLiteSystemDB: synced(b, filepath.Join(dir, "dbos-full.db"))})
	var best struct{ fsync, ours, asItComes, full float64 }
	for b.Loop() {
		best.fsync = max(best.fsync, fsyncs(b, disk))
		best.ours = max(best.ours, stepsPerSecond(b, ours))
		best.asItComes = max(best.asItComes, stepsPerSecond(b, asItComes))
		best.full = max(best.full, stepsPerSecond(b, full))
	}
	b.ReportMetric(0, "ns/op") // of all sides together: it means nothing
	b.ReportMetric(best.fsync, "fsyncs/s")
	b.ReportMetric(best.ours, "callsheet-steps/s")
	b.ReportMetric(best.asItComes, "dbos-steps/s")
	b.ReportMetric(best.full, "dbos-full-steps/s")
	b.ReportMetric(best.ours/best.asItComes, "×dbos")
	b.ReportMetric(best.ours/best.full, "×dbos-full")
}

func stepsPerSecond(b *testing.B, run side) float64 {
	start := time.Now()
	if err := run(); err != nil {
		b.Fatal(err)
	}
	return plans * steps / time.Since(start).Seconds()
}

// fsyncs is the rate of the disk itself: write a page, wait for the disk.
func fsyncs(b *testing.B, path string) float64 {
	const n = 200
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 4096)
	start := time.Now()
	for i := range n {
		if _, err := f.WriteAt(page, int64(i*len(page))); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return n / time.Since(start).Seconds()
}

// atOnce calls do for every plan from a goroutine of its own and returns one of
// the errors.
func atOnce(do func() error) error {
	errs := make(chan error, plans)
	var wg sync.WaitGroup
	for range plans {
		wg.Go(func() {
			if err := do(); err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func callsheet(b *testing.B, dir string) side {
	store, err := journal.Open(filepath.Join(dir, "journal.db"), journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	tools, err := tool.NewSet(tool.Tool{
		Declaration: tool.Declaration{Name: "noop", Effects: tool.Effects{ReadOnly: true}},
		Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
			x, _ := c.Args.Get("x")
			return x, nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	text.WriteString(`[{"id": "s0", "tool": "noop", "args": {"x": 1}}`)
	for i := 1; i < steps; i++ {
		fmt.Fprintf(&text, `, {"id": "s%d", "tool": "noop", "args": {"x": "$s%d"}}`, i, i-1)
	}
	p, err := plan.Decode([]byte(text.String()+"]"), plan.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	return func() error {
		return atOnce(func() error {
			r, err := record.Run(context.Background(), store, p, tools, record.Options{})
			if err == nil && !r.OK() {
				err = fmt.Errorf("callsheet: %s", r.AppendJSON(nil))
			}
			return err
		})
	}
}

// chain is the same plan as a workflow of DBOS.
func chain(ctx dbos.Context, x int) (int, error) {
	for range steps {
		var err error
		if x, err = dbos.RunAsStep(ctx, func(context.Context) (int, error) { return x, nil }); err != nil {
			return 0, err
		}
	}
	return x, nil
}

func transact(b *testing.B, c dbos.Config) side {
	c.AppName = "bench"
	c.Logger = slog.New(slog.DiscardHandler)
	ctx, err := dbos.NewContext(context.Background(), c)
	if err != nil {
		b.Fatal(err)
	}
	dbos.RegisterWorkflow(ctx, chain)
	if err := dbos.Launch(ctx); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dbos.Shutdown(ctx, 10*time.Second) })
	return func() error {
		return atOnce(func() error {
			h, err := dbos.RunWorkflow(ctx, chain, 1)
			if err != nil {
				return err
			}
			x, err := h.GetResult()
			if err == nil && x != 1 {
				err = fmt.Errorf("dbos: got %d, want 1", x)
			}
			return err
		})
	}
}

// synced is the pool that DBOS makes for itself, but with commits that are on
// the disk when they return.
func synced(b *testing.B, path string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=foreign_keys(ON)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		b.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(4)
	b.Cleanup(func() { db.Close() })
	return db
}
