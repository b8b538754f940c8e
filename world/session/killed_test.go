package session

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/state"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	dirs := os.Getenv(childEnv)
	if dirs == "" {
		os.Exit(m.Run())
	}
	world, play, _ := strings.Cut(dirs, "\n")
	b, err := book.Open(world)
	if err != nil {
		panic(err)
	}
	s, err := Open(context.Background(), play, b, Options{NoSync: true})
	if err != nil {
		panic(err)
	}
	for {
		if _, err := s.Step(context.Background(), request("deposit", `{"amount":1}`)); err != nil {
			panic(err)
		}
		fmt.Println(s.State().Revision)
	}
}

func TestAKilledSessionOpensAndContinues(t *testing.T) {
	dir, b := t.TempDir(), ledger(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range rounds {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), childEnv+"="+b.Dir()+"\n"+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Killed after so many steps, and while it is in the middle of the next.
		last, lines := int64(0), bufio.NewScanner(out)
		for range 1 + rng.IntN(400) {
			if !lines.Scan() {
				t.Fatal("the child ended by itself")
			}
			fmt.Sscan(lines.Text(), &last)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			fmt.Sscan(lines.Text(), &last)
		}
		cmd.Wait()
		s, err := Open(t.Context(), dir, b, Options{NoSync: true})
		if err != nil {
			t.Fatalf("after %d steps: %v", last, err)
		}
		rev := s.State().Revision
		if rev < last || rev > last+1 {
			t.Errorf("the child had committed %d, the session is at %d", last, rev)
		}
		if v, _ := s.State().Get("world.balance"); v.String() != fmt.Sprintf("%d.0", 100+rev) {
			t.Errorf("balance %s at revision %d", v, rev)
		}
		rows, err := s.Audit(t.Context(), 0)
		if err != nil || int64(len(rows)) != rev {
			t.Errorf("%d audit rows at revision %d, %v", len(rows), rev, err)
		}
		if n, err := s.Memory().Count(t.Context()); err != nil || int64(n) != rev {
			t.Errorf("%d memories at revision %d, %v", n, rev, err)
		}
		if _, err := s.Step(t.Context(), request("deposit", `{"amount":1}`)); err != nil {
			t.Errorf("it does not go on: %v", err)
		}
		s.Close()
	}
}

// big is a world of 10 000 rules, with a state of a megabyte.
func big(b testing.TB) (*book.Book, state.State) {
	a, c := book.Demo()
	for i := range 1000 {
		name := fmt.Sprintf("act%d", i)
		a.ActionSchema.Actions = append(a.ActionSchema.Actions, world.ActionSpec{Name: name})
		for j := range 10 {
			r := a.Rules[3]
			r.ID, r.ActionType = fmt.Sprintf("r%d_%d", i, j), name
			a.Rules = append(a.Rules, r)
		}
	}
	a.StateSchema.Fields = append(a.StateSchema.Fields, world.StateField{Path: "world.items", Type: world.ObjectType, Mutable: true, Visibility: "world", Default: value.NullValue()})
	a.Rules[0].Effects = append(a.Rules[0].Effects, world.Mutation{Op: world.Set, Path: "world.items.item77", Value: value.MustParse(`{"$action_arg":"amount"}`)})
	var items []value.Member
	for i := range 10_000 {
		items = append(items, value.Member{Key: fmt.Sprintf("item%d", i), Value: value.MustText(strings.Repeat("x", 90))})
	}
	st, err := state.Parse(value.ObjectOf(value.Member{Key: "world", Value: value.ObjectOf(
		value.Member{Key: "balance", Value: value.MustParse("100.0")}, value.Member{Key: "items", Value: value.ObjectOf(items...)})}))
	if err != nil {
		b.Fatal(err)
	}
	return compile(b, a, c, book.WriteOptions{}), st
}

// The cost of a rule-routed step without fsync, at the beginning of an episode
// and after 100 000 steps.
func BenchmarkStep(b *testing.B) {
	for _, steps := range []int{10, 100_000} {
		b.Run(fmt.Sprintf("after=%d", steps), func(b *testing.B) {
			w, st := big(b)
			s := open(b, b.TempDir(), w, Options{Initial: &st})
			req := request("deposit", `{"amount":1}`)
			for range steps {
				if _, err := s.Step(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := s.Step(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
