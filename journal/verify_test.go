package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/value"
	"pgregory.net/rapid"
)

// export writes a run as text.
func export(t testing.TB, s *journal.Store, id string) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := s.Export(t.Context(), id, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// verify audits text.
func verify(t testing.TB, text string, trust journal.Trust) *journal.Report {
	t.Helper()
	r, err := journal.Verify(strings.NewReader(text), trust)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// small makes a run with a stored part, finished or not.
func small(t testing.TB, s *journal.Store, finished bool) string {
	r := create(t, s, journal.Start{Name: "small", Plan: value.MustParse(`[]`).Digest()})
	big := value.MustText(strings.Repeat("é", journal.InlineMax/2+1))
	appendWait(t, r, record("intent", `{"step":"s1"}`),
		journal.Record{Kind: "outcome", Body: value.ObjectOf(value.Member{Key: "output", Value: big})},
		record("intent", `{"step":"s2"}`))
	if finished {
		if _, err := r.Finish(t.Context(), record("end", `{}`)); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return r.ID()
}

// place says which record a byte of an export belongs to, as faults count them.
func place(text string, offset int) int {
	if strings.HasPrefix(text[offset:], "\n{\"blob\"") {
		return 2 // two lines in one: the earlier of the records that lose by it
	}
	at := strings.Count(text[:offset], "\n") - 1
	records := strings.Count(text, "\n{\"v\":")
	if at < records {
		return at
	}
	if strings.HasPrefix(text[strings.LastIndexByte(text[:offset], '\n')+1:], `{"blob"`) {
		return 2 // the only record with a stored part
	}
	return records
}

func TestHostile084_EveryFlippedByteOfAnExport(t *testing.T) {
	s := newStore(t)
	for _, finished := range []bool{true, false} {
		text := export(t, s, small(t, s, finished))
		if r := verify(t, text, journal.Trust{Keys: []string{s.Key().Fingerprint()}}); !r.OK() || r.Final != finished {
			t.Fatalf("the export itself: %+v", r)
		}
		step := 1
		if testing.Short() {
			step = 7
		}
		for i := 0; i < len(text); i += step {
			for bit := i % step; bit < 8; bit += step {
				b := []byte(text)
				b[i] ^= 1 << bit
				r := verify(t, string(b), journal.Trust{})
				if r.OK() {
					t.Fatalf("finished %v: byte %d bit %d: not found", finished, i, bit)
				}
				if got, want := r.Faults[0].Index, place(text, i); got != want {
					t.Errorf("finished %v: byte %d bit %d: found at %d, want %d: %v", finished, i, bit, got, want, r.Faults)
				}
			}
		}
	}
}

func TestHostile055_EveryPrefixOfAnExport(t *testing.T) {
	s := newStore(t)
	text := export(t, s, small(t, s, true))
	records := strings.Count(text, "\n{\"v\":")
	if _, err := journal.Verify(strings.NewReader(""), journal.Trust{}); !errors.Is(err, journal.ErrEmpty) {
		t.Errorf("nothing: %v", err)
	}
	for i := 1; i < len(text); i++ {
		r := verify(t, text[:i], journal.Trust{})
		if r.OK() {
			t.Fatalf("prefix of %d bytes: accepted", i)
		}
		whole := max(0, min(strings.Count(text[:i], "\n")-1, records))
		if r.Head.Records != whole {
			t.Errorf("prefix of %d bytes: %d records, want %d", i, r.Head.Records, whole)
		}
		last := r.Faults[len(r.Faults)-1]
		if !strings.Contains(last.Reason, "truncated") {
			t.Errorf("prefix of %d bytes: %v", i, r.Faults)
		}
		if want := 1; whole > 0 && len(r.Faults) != want {
			t.Errorf("prefix of %d bytes: %d faults: %v", i, len(r.Faults), r.Faults)
		}
	}
	for name, extra := range map[string]string{"a byte": "x", "a newline": "\n", "a second footer": text[strings.LastIndex(text[:len(text)-1], "\n")+1:]} {
		if r := verify(t, text+extra, journal.Trust{}); r.OK() {
			t.Errorf("%s after the end: accepted", name)
		}
	}
}

// TestHostile084_ChangedLog does to an export what can be done to lines.
func TestHostile084_ChangedLog(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{})
	for i := range 250 {
		r.Append(journal.Record{Kind: "event", Body: value.Int(int64(i))})
	}
	head, err := r.Finish(t.Context(), record("end", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.SplitAfter(export(t, s, r.ID()), "\n")
	text = text[:len(text)-1]
	lines, footer := text[:len(text)-1], text[len(text)-1]
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(1, len(lines)-2).Draw(t, "line") // record at-1; the last one has its own cases
		changed := slices.Clone(lines)
		want := at - 1
		switch how := rapid.SampledFrom([]string{"drop", "swap", "double", "edit", "retype prev"}).Draw(t, "how"); how {
		case "drop":
			changed = slices.Delete(changed, at, at+1)
		case "swap":
			changed[at], changed[at+1] = changed[at+1], changed[at]
		case "double":
			changed = slices.Insert(changed, at+1, changed[at])
			want++
		case "edit":
			changed[at] = strings.Replace(changed[at], `,"mono":`, `,"mono":1`, 1)
		case "retype prev":
			i := strings.Index(changed[at], `"prev":"`) + len(`"prev":"`)
			changed[at] = changed[at][:i] + strings.ToUpper(changed[at][i:i+64]) + changed[at][i+64:]
			if changed[at] == lines[at] {
				t.Skip("a hash without letters")
			}
		}
		r, err := journal.Verify(strings.NewReader(strings.Join(changed, "")+footer), journal.Trust{})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() || r.Faults[0].Index != want {
			t.Fatalf("got %v, want the first fault at %d", r.Faults, want)
		}
	})
	whole := verify(t, strings.Join(text, ""), journal.Trust{Head: &head})
	if !whole.OK() || whole.Head != head || !whole.Final || whole.Signed != head.Records {
		t.Errorf("unchanged: %+v", whole)
	}
}

func TestHostile084_CutTail(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{})
	appendWait(t, r, record("intent", `1`), record("outcome", `2`))
	short := export(t, s, r.ID()) // what somebody could make of the log by cutting it
	appendWait(t, r, record("intent", `3`))
	head := r.Head()

	got := verify(t, short, journal.Trust{})
	if !got.OK() {
		t.Errorf("without a head a cut tail cannot be found, but: %v", got.Faults)
	}
	notes := strings.Join(got.Notes(), "\n")
	for _, want := range []string{"unfinished: no final checkpoint", "a cut tail is found only against a known head", "a run that was deleted whole is found only against a known head"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes do not say %q:\n%s", want, notes)
		}
	}
	got = verify(t, short, journal.Trust{Head: &head})
	if got.OK() || got.Faults[0].Index != 3 || !strings.Contains(got.Faults[0].Reason, "truncated") {
		t.Errorf("against the head: %v", got.Faults)
	}
	appendWait(t, r, record("outcome", `4`))
	if got = verify(t, export(t, s, r.ID()), journal.Trust{Head: &head}); !got.OK() {
		t.Errorf("a log that went on from the head: %v", got.Faults)
	}
	parsed, err := journal.ParseHead(head.String())
	if err != nil || parsed != head {
		t.Errorf("head %s read back: %v, %v", head, parsed, err)
	}
}

func TestHostile085_ForgedLog(t *testing.T) {
	s := newStore(t)
	id := small(t, s, true)
	real := verify(t, export(t, s, id), journal.Trust{})

	// The forger writes a log of his own, with the same id and a key of his own.
	forger := newStore(t)
	r := create(t, forger, journal.Start{ID: id, Name: "small", Plan: value.MustParse(`[]`).Digest()})
	if _, err := r.Finish(t.Context(), record("end", `{"forged":true}`)); err != nil {
		t.Fatal(err)
	}
	forged := export(t, forger, id)

	got := verify(t, forged, journal.Trust{})
	if !got.OK() || !strings.Contains(strings.Join(got.Notes(), "\n"), "self-signed only") {
		t.Errorf("without a key: %v, %v", got.Faults, got.Notes())
	}
	got = verify(t, forged, journal.Trust{Keys: []string{s.Key().Fingerprint()}})
	if got.OK() || got.Faults[0].Index != -1 {
		t.Errorf("with the key: %v", got.Faults)
	}
	got = verify(t, forged, journal.Trust{Head: &real.Head})
	if got.OK() {
		t.Error("with the head: accepted")
	}
	// Under the real header nothing can be forged that is signed.
	realText, _, _ := strings.Cut(export(t, s, id), "\n")
	_, rest, _ := strings.Cut(forged, "\n")
	got = verify(t, realText+"\n"+rest, journal.Trust{Keys: []string{s.Key().Fingerprint()}})
	if got.OK() {
		t.Error("under the real header: accepted")
	}
}

func TestCheckpointsStandWhereTheyMust(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{})
	for range 300 {
		r.Append(record("event", `1`))
	}
	if _, err := r.Finish(t.Context(), record("end", `1`)); err != nil {
		t.Fatal(err)
	}
	var at []int
	for e, err := range s.Entries(t.Context(), r.ID(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "checkpoint" {
			at = append(at, e.Index)
		}
	}
	if want := []int{99, 199, 299, 305}; !slices.Equal(at, want) {
		t.Errorf("checkpoints at %v, want %v", at, want)
	}
}

func TestRotatedKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path, journal.Options{})
	r := create(t, s, journal.Start{})
	appendWait(t, r, record("intent", `1`))
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	old := s.Key()
	s = open(t, path, journal.Options{NewKey: true})
	now := s.Key()
	if keys, err := s.Keys(t.Context()); err != nil || !slices.Equal(keys, []string{old.Fingerprint(), now.Fingerprint()}) {
		t.Errorf("keys: %v, %v; want %s and %s", keys, err, old.Fingerprint(), now.Fingerprint())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, journal.Options{})
	if s.Key().Fingerprint() != now.Fingerprint() {
		t.Error("the store does not use the new key")
	}
	r, err := s.OpenRun(t.Context(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(t.Context(), record("end", `1`)); err != nil {
		t.Fatal(err)
	}
	text := export(t, s, r.ID())
	for name, c := range map[string]struct {
		keys []string
		ok   bool
	}{
		"both": {[]string{old.Fingerprint(), now.Fingerprint()}, true},
		"old":  {[]string{old.Fingerprint()}, false},
		"new":  {[]string{now.Fingerprint()}, false},
	} {
		if got := verify(t, text, journal.Trust{Keys: c.keys}); got.OK() != c.ok {
			t.Errorf("%s: %v", name, got.Faults)
		}
	}
	if _, err := journal.Verify(strings.NewReader(text), journal.Trust{Keys: []string{"abc"}}); err == nil {
		t.Error("a fingerprint that is none was accepted")
	}
}

func TestHostile086_SaltedDigest(t *testing.T) {
	s, other := newStore(t), newStore(t)
	pin := []byte("1234")
	if first, again := s.HMAC("arg", pin), s.HMAC("arg", []byte("1234")); first != again {
		t.Error("not constant")
	}
	seen := map[string]string{}
	for name, sum := range map[string][32]byte{
		"this":          s.HMAC("arg", pin),
		"other kind":    s.HMAC("key", pin),
		"other store":   other.HMAC("arg", pin),
		"split":         s.HMAC("arg", pin[:2], pin[2:]),
		"moved":         s.HMAC("arg1", pin[1:]),
		"empty second":  s.HMAC("arg", pin, nil),
		"empty first":   s.HMAC("arg", nil, pin),
		"nothing":       s.HMAC("arg"),
		"kind in parts": s.HMAC("", []byte("arg"), pin),
	} {
		if was, ok := seen[fmt.Sprintf("%x", sum)]; ok {
			t.Errorf("%s is the same as %s", name, was)
		}
		seen[fmt.Sprintf("%x", sum)] = name
	}
}

// v1Key is the fingerprint of the key that signed testdata/v1.export.
const v1Key = "0076108834fa0d21bc24b861aac74a777c7de77065aebe2c5dc8d2fa3c6f1dbf"

// v1 is an export that version 1 of the format wrote. Every later version must
// verify it.
func v1(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/v1.export")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestExportOfVersion1(t *testing.T) {
	r := verify(t, string(v1(t)), journal.Trust{Keys: []string{v1Key}})
	if !r.OK() || !r.Final || r.Head.Records != 6 || r.Header.Name != "small" {
		t.Errorf("%+v", r)
	}
}

func FuzzVerify(f *testing.F) {
	text := v1(f)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte("{}\n"))
	trust := journal.Trust{Keys: []string{v1Key}}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := journal.Verify(bytes.NewReader(b), trust)
		if err == nil && r.OK() && r.Final && !bytes.Equal(b, text) {
			t.Errorf("accepted under the key, though it is not what was written: %d bytes", len(b))
		}
	})
}
