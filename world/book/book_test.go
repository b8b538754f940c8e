package book

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/google/go-cmp/cmp"
)

func ledger(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ledger")
	a, c := Demo()
	if err := Write(dir, a, c, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, dir string) *Book {
	t.Helper()
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func TestTheDemonstrationIsTheReferences(t *testing.T) {
	dir := ledger(t)
	for file, want := range map[string]string{"construction/artifacts.json": "testdata/ledger_artifacts.json", "construction/config.json": "testdata/ledger_config.json"} {
		got, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(want)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(text), string(got)); d != "" {
			t.Errorf("%s (-want +got):\n%s", file, d)
		}
	}
	b := open(t, dir)
	if got, want := b.Manifest.ArtifactDigest(), "dc3f858ba9852d1618c5eebe625140c4f54be94ce93576c1f692d8fd3a9d6ec5"; got != want {
		t.Errorf("artifact digest %s, want %s", got, want)
	}
	if got, want := b.Manifest.ConfigDigest(), "3618f49018d1e853203679165ca54adffc1c6c3a5bc9b3b8aa7393233f4d61ef"; got != want {
		t.Errorf("config digest %s, want %s", got, want)
	}
	if b.Manifest.Status() != ByHand || b.Manifest.MinRuleConfidence() != 0.55 || b.Manifest.Scope()["environment_id"] != "demo.ledger" {
		t.Errorf("manifest %+v", b.Manifest)
	}
	a, c, err := b.Artifacts()
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "again")
	if err := Write(again, a, c, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files(t, dir), files(t, again)); d != "" {
		t.Errorf("the same inputs gave other bytes:\n%s", d)
	}
}

func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsNotIntactIsRefused(t *testing.T) {
	whole := ledger(t)
	for name := range files(t, whole) {
		if name == "manifest.json" {
			continue
		}
		for what, harm := range map[string]func(file string) error{
			"changed": func(file string) error {
				text, err := os.ReadFile(file)
				if err != nil {
					return err
				}
				if len(text) == 0 {
					text = []byte("x")
				}
				text[len(text)/2] ^= 1
				return os.WriteFile(file, text, 0o600)
			},
			"missing": os.Remove,
			"extra":   func(file string) error { return os.WriteFile(file+".orig", nil, 0o600) },
			"a link": func(file string) error {
				return errors.Join(os.Remove(file), os.Symlink(filepath.Join(whole, name), file))
			},
		} {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			if err := harm(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{Verify(dir), func() error { _, err := Open(dir); return err }()} {
				if !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), filepath.ToSlash(name)) {
					t.Errorf("%s %s: got %v", name, what, err)
				}
			}
		}
	}
	if err := Verify(whole); err != nil {
		t.Error(err)
	}
}

func TestAManifestCannotReachOutside(t *testing.T) {
	dir := ledger(t)
	file := filepath.Join(dir, "manifest.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), `"overview.md"`, `"../overview.md"`, 1))
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Verify(dir); !errors.Is(err, ErrIntegrity) {
		t.Errorf("got %v", err)
	}
}

// No hash covers the manifest: what it says is checked against what it was
// written from.
func TestAManifestMustAgreeWithItsPackage(t *testing.T) {
	whole := ledger(t)
	text, err := os.ReadFile(filepath.Join(whole, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for old, c := range map[string]struct{ with, want string }{
		`"schema_version": "1.1"`:                {`"schema_version": "9"`, `the schema version is "9"`},
		`"name": "Trace2Env Ledger Demo"`:        {`"name": "Production"`, `name is "Production"`},
		`"environment_id": "demo.ledger",`:       {`"environment_id": "prod",`, `environment_id is "prod"`},
		`"description": "A tiny`:                 {`"description": "The`, "description"},
		`"tool",`:                                {`"tools",`, "domains"},
		`"min_rule_confidence": 0.55`:            {`"min_rule_confidence": 0.0`, `min_rule_confidence is "0"`},
		`"construction_kind": "authored"`:        {`"construction_kind": "ablated"`, "construction_kind"},
		`"validation_status": "authored"`:        {`"validation_status": "validated"`, "validation_status is validated"},
		"\"validation_status\": \"authored\"\n":  {"\"validation_status\": \"blessed\"\n", `"blessed"`},
		`"environment_id": "demo.ledger"` + "\n": {`"environment_id": "other"` + "\n", "scope_context"},
		`"tenant_scope": null`:                   {`"tenant_scope": "x"`, "tenant_scope"},
		`"config_digest": "`:                     {`"config_digest": "0`, "config_digest"},
	} {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		edited := strings.Replace(string(text), old, c.with, 1)
		if edited == string(text) {
			t.Fatalf("the manifest has no %s", old)
		}
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want …%s…", c.with, err, c.want)
		}
	}
}

// What is read after a package was opened is verified then.
func TestAnIndexThatIsReplacedIsNotSearched(t *testing.T) {
	dir := ledger(t)
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := os.WriteFile(filepath.Join(dir, indexFile), []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Search(t.Context(), "withdraw", nil, 3); !errors.Is(err, ErrIntegrity) {
		t.Errorf("got %v", err)
	}
}

// Evidence is for those who ask for it: a package without any has none.
func TestAPackageWithoutEvidence(t *testing.T) {
	b := &Book{dir: t.TempDir(), Manifest: Manifest{Files: Hashes{}}}
	ev, err := b.Evidence()
	if err != nil || ev.Resolve("x") != nil {
		t.Errorf("%v, %v", ev, err)
	}
	if eps, slices, err := b.Recording(); err != nil || len(eps)+len(slices) > 0 {
		t.Errorf("%v, %v, %v", eps, slices, err)
	}
}

func TestWriteNeverTouchesWhatIsThere(t *testing.T) {
	dir := ledger(t)
	a, c := Demo()
	if err := Write(dir, a, c, WriteOptions{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want that it exists", err)
	}
	a.Notes[0].ActionTypes = []string{"transfer"}
	bad := filepath.Join(filepath.Dir(dir), "bad")
	if err := Write(bad, a, c, WriteOptions{}); err == nil || !strings.Contains(err.Error(), "unknown action") {
		t.Errorf("got %v, want unknown action", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestExtensionsAreMarked(t *testing.T) {
	a, c := Demo()
	a.Rules[0].Effects[0].Value = value.MustParse(`{"$state_path":"world.balance"}`)
	if err := Write(filepath.Join(t.TempDir(), "plain"), a, c, WriteOptions{}); err == nil || !strings.Contains(err.Error(), "rule deposit_success") {
		t.Errorf("the plain writer took it: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "extended")
	if err := Write(dir, a, c, WriteOptions{Extended: true}); err != nil {
		t.Fatal(err)
	}
	if b := open(t, dir); !b.Extended() {
		t.Error("the mark is lost")
	}
}

func TestSearch(t *testing.T) {
	a, c := Demo()
	a.Notes = append(a.Notes, world.Note{ID: "cjk", Kind: "fact", Statement: "余额不足时取款失败。", Confidence: 1, Status: world.Supported},
		world.Note{ID: "ru", Kind: "fact", Statement: "Недостаточно средств на счёте", Confidence: 1, Status: world.Supported})
	dir := filepath.Join(t.TempDir(), "w")
	if err := Write(dir, a, c, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b := open(t, dir)
	for _, q := range []struct {
		query string
		kinds []string
		want  string
	}{
		{"fractional digit", nil, "note:balance_format"}, {"covered withdrawal", []string{"rule"}, "rule:withdraw_success rule:withdraw_insufficient"},
		{"余额", nil, "note:cjk"}, {"取款 失败", nil, "note:cjk"}, {"средств", nil, "note:ru"}, {"  ", nil, ""}, {"100%", nil, ""}, {`" OR *`, nil, ""},
	} {
		hits, err := b.Search(t.Context(), q.query, q.kinds, 8)
		if err != nil {
			t.Errorf("%s: %v", q.query, err)
		}
		var got []string
		for _, h := range hits {
			got = append(got, h.ID)
		}
		if strings.Join(got, " ") != q.want {
			t.Errorf("Search(%q) = %v, want %s", q.query, got, q.want)
		}
	}
}

func TestPatch(t *testing.T) {
	a, _ := Demo()
	base, err := a.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for edits, want := range map[string]string{
		`{"collection":"notes","key":"n","operation":"add","value":{"id":"n","statement":"new"}}`:                                     "",
		`{"collection":"notes","key":"balance_format","operation":"remove"}`:                                                          "",
		`{"collection":"notes","key":"n","operation":"add","value":{"id":"m","statement":"new"}}`:                                     "the key says",
		`{"collection":"notes","key":"balance_format","operation":"add","value":{"id":"balance_format","statement":"x"}}`:             "there already",
		`{"collection":"rules","key":"z","operation":"remove"}`:                                                                       "not there",
		`{"collection":"rules","key":"balance_read","operation":"remove","value":{}}`:                                                 "takes no value",
		`{"collection":"actions","key":"balance","operation":"remove"},{"collection":"actions","key":"balance","operation":"remove"}`: "edited twice",
		`{"collection":"zzz","key":"z","operation":"remove"}`:                                                                         "no collection",
	} {
		var p Patch
		doc := fmt.Sprintf(`{"base_artifact_digest":%q,"rationale":"r","failed_case_ids":["c"],"edits":[%s]}`, base, edits)
		if err := world.Decode([]byte(doc), &p); err != nil {
			t.Fatal(err)
		}
		got, err := p.Apply(a)
		if want == "" && (err != nil || len(got.Notes) == len(a.Notes)) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", edits, err, want)
		}
		p.BaseArtifactDigest = "stale"
		if _, err := p.Apply(a); !world.IsFault(err, world.ValueError) {
			t.Errorf("a stale patch: %v", err)
		}
	}
	if now, _ := a.Digest(); now != base {
		t.Error("the base was changed")
	}
}

func FuzzDecodeArtifacts(f *testing.F) {
	f.Add([]byte(demo))
	f.Add([]byte(`{"rules":[{"id":"a","action_type":"b","description":"","conditions":[{"not":{"left":{"path":"world.x"},"op":"eq"}}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var a Artifacts
		if world.Decode(text, &a) != nil {
			return
		}
		d, err := a.Digest()
		if err != nil {
			t.Fatal(err)
		}
		out, err := world.AppendDocument(nil, &a)
		if err != nil {
			t.Fatal(err)
		}
		var again Artifacts
		if err := world.Decode(out, &again); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
		if d2, err := again.Digest(); err != nil || d != d2 {
			t.Fatalf("digest %s became %s, %v", d, d2, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "big")
	a, c := Demo()
	if err := Write(dir, a, c, WriteOptions{}); err != nil {
		b.Fatal(err)
	}
	m := open(b, dir).Manifest
	// A gigabyte in ten files, put into the manifest by its own hash.
	const size = 100 << 20
	blob := make([]byte, size)
	rand.Read(blob)
	w := &writer{stage: dir, hashes: Hashes{}, dirs: map[string]bool{".": true}}
	for i := range 10 {
		w.file(fmt.Sprintf("evidence/part-%d.bin", i), blob)
	}
	for name, sum := range w.hashes {
		m.Files[name] = sum
	}
	text, err := world.AppendDocument(nil, &m)
	if err != nil || w.err != nil {
		b.Fatal(err, w.err)
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(10 * size)
	for b.Loop() {
		bk, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		bk.Close()
	}
}
