// Package book reads and writes worldbooks: immutable directories that hold
// what is known of an environment and the recordings that say so.
//
//	b, err := book.Open("ledger.world")
//	defer b.Close()
//	hits, err := b.Search(ctx, "fractional digit", nil, 8)
//	fmt.Println(b.Manifest.Status(), hits[0].ID)
//
// Opening one verifies the SHA-256 of every file, and that none is missing or
// extra; what is read later is verified again (spec/world.md §1). The layout is
// that of spec/world-reference.md §4, so that packages can be exchanged.
package book

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/engine"
)

// ErrIntegrity is what every package that is not what its manifest says is
// refused with.
var ErrIntegrity = errors.New("the worldbook is not intact")

// Files that say how the package was made; the manifest is checked against them.
const (
	artifactsFile = "construction/artifacts.json"
	configFile    = "construction/config.json"
	reportFile    = "validation/replay.json"
)

// maxManifest bounds manifest.json, which is read before anything is verified:
// a hundred thousand files need less.
const maxManifest = 64 << 20

// A Book is an open worldbook. It is safe for concurrent use.
type Book struct {
	Manifest Manifest
	Engine   *engine.Engine

	dir    string
	digest string

	mu       sync.Mutex
	db       *sql.DB   // holding mu; nil until the first search
	evidence *Evidence // holding mu; nil until it is asked for
	closed   bool      // holding mu
}

// Open verifies a package and reads what playing it needs. The error is
// [ErrIntegrity] when a file is missing, extra or changed.
func Open(dir string) (*Book, error) {
	b := &Book{dir: dir}
	needed := map[string][]byte{"action_schema.json": nil, "state_schema.json": nil, "invariants.json": nil, "renderer/contracts.json": nil,
		"rules/index.jsonl": nil, "demonstrations/transitions.jsonl": nil, "knowledge/notes.jsonl": nil, configFile: nil, reportFile: nil}
	if err := b.verify(needed); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := b.agrees(needed[configFile], needed[reportFile]); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	extended, err := b.Manifest.extended()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	k := engine.Knowledge{Scope: b.Manifest.Scope(), MinConfidence: b.Manifest.MinRuleConfidence(), Extended: extended}
	var actions world.ActionSchema
	var fields world.StateSchema
	for name, into := range map[string]any{"action_schema.json": &actions, "state_schema.json": &fields,
		"invariants.json": &k.Invariants, "renderer/contracts.json": &k.Renderers} {
		if needed[name] == nil {
			return nil, fmt.Errorf("%s: %w: %s is missing", dir, ErrIntegrity, name)
		}
		if err := world.Decode(needed[name], into); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", dir, name, err)
		}
	}
	k.Actions, k.Fields = actions.Actions, fields.Fields
	readAll := []func() error{
		func() (err error) { k.Rules, err = world.ReadLines[world.Rule](needed["rules/index.jsonl"]); return },
		func() (err error) {
			k.Demonstrations, err = world.ReadLines[world.Demonstration](needed["demonstrations/transitions.jsonl"])
			return
		},
		func() (err error) {
			k.Notes, err = world.ReadLines[world.Note](needed["knowledge/notes.jsonl"])
			return
		},
	}
	for i, name := range []string{"rules/index.jsonl", "demonstrations/transitions.jsonl", "knowledge/notes.jsonl"} {
		if err := readAll[i](); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", dir, name, err)
		}
	}
	if !extended {
		if what := usesExtension(&Artifacts{Rules: k.Rules, Invariants: k.Invariants}); what != "" {
			return nil, fmt.Errorf("%s: %s uses any, all, not or $state_path, but the manifest does not declare the extension %s", dir, what, Extension)
		}
	}
	if b.Engine, err = engine.New(k); err != nil {
		return nil, fmt.Errorf("%s: %w: %v", dir, ErrIntegrity, err)
	}
	return b, nil
}

// agrees checks the manifest against the files that it was written from. A
// package without them can be played, and not patched or promoted.
func (b *Book) agrees(config, report []byte) error {
	if config == nil {
		return nil
	}
	var c Config
	if err := world.Decode(config, &c); err != nil {
		return fmt.Errorf("%s: %w", configFile, err)
	}
	var r value.Value
	if report != nil {
		var err error
		if r, err = value.Parse(report); err != nil {
			return fmt.Errorf("%s: %w", reportFile, err)
		}
	}
	return b.Manifest.agrees(&c, r)
}

// Verify verifies a package without reading more of it than its bytes.
func Verify(dir string) error {
	b := &Book{dir: dir}
	if err := b.verify(nil); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// Close lets go of the index.
func (b *Book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.db == nil {
		return nil
	}
	db := b.db
	b.db = nil
	return db.Close()
}

// Dir is the directory that was opened.
func (b *Book) Dir() string { return b.dir }

// Digest identifies the package: the SHA-256 of its manifest, which holds those
// of all other files.
func (b *Book) Digest() string { return b.digest }

// verify reads the manifest and checks every file against it. The contents of
// the files in keep are put there, as they were hashed.
func (b *Book) verify(keep map[string][]byte) error {
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	found, err := listFiles(root) // before one is opened: a named pipe would wait for a writer
	if err != nil {
		return err
	}
	text, err := readBounded(root, "manifest.json", maxManifest)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	b.digest = hex.EncodeToString(sum[:])
	if err := world.Decode(text, &b.Manifest); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	if err := b.Manifest.check(); err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	for name := range b.Manifest.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) || name != filepath.ToSlash(filepath.Clean(name)) || name == "manifest.json" {
			return fmt.Errorf("%w: the manifest lists %q, which is no file of a package", ErrIntegrity, name)
		}
		if !found[name] {
			return fmt.Errorf("%w: %s is missing", ErrIntegrity, name)
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		if _, ok := b.Manifest.Files[name]; !ok && name != "manifest.json" {
			return fmt.Errorf("%w: %s is not in the manifest", ErrIntegrity, name)
		}
		if name != "manifest.json" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return b.hash(root, names, keep)
}

// hash checks files on all processors; the first fault by name wins, so that
// the same package gives the same error.
func (b *Book) hash(root *os.Root, names []string, keep map[string][]byte) error {
	faults := make([]error, len(names))
	var mu sync.Mutex
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		wg.Go(func() {
			buf := make([]byte, 1<<20)
			for i := range next {
				name := names[i]
				mu.Lock()
				_, wanted := keep[name]
				mu.Unlock()
				text, err := b.check(root, name, buf, wanted)
				faults[i] = err
				if wanted && err == nil {
					mu.Lock()
					keep[name] = text
					mu.Unlock()
				}
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range faults {
		if err != nil {
			return err
		}
	}
	return nil
}

// check hashes one file, and returns its bytes when they are wanted.
func (b *Book) check(root *os.Root, name string, buf []byte, wanted bool) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	text := []byte{}
	for {
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if wanted {
			text = append(text, buf[:n]...)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != b.Manifest.Files[name] {
		return nil, fmt.Errorf("%w: %s has changed: its SHA-256 is %s, the manifest says %s", ErrIntegrity, name, got, b.Manifest.Files[name])
	}
	return text, nil
}

// read returns a file of the package, verified once more.
func (b *Book) read(name string) ([]byte, error) {
	if _, ok := b.Manifest.Files[name]; !ok {
		return nil, fmt.Errorf("%s: the worldbook has no %s: %w", b.dir, name, fs.ErrNotExist)
	}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := b.check(root, name, make([]byte, 1<<20), true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.dir, err)
	}
	return text, nil
}

// optional is read of a file of lines that a package may be without: it has none.
func (b *Book) optional(name string) ([]byte, error) {
	if _, ok := b.Manifest.Files[name]; !ok {
		return nil, nil
	}
	return b.read(name)
}

func readBounded(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: it has no %s, so it is no worldbook", ErrIntegrity, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrIntegrity, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%w: %s is larger than %d bytes", ErrIntegrity, name, limit)
	}
	return text, err
}

// listFiles lists every file below the root; anything but files and
// directories is refused.
func listFiles(root *os.Root) (map[string]bool, error) {
	found := map[string]bool{}
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
		case !d.Type().IsRegular():
			return fmt.Errorf("%w: %s is neither a file nor a directory", ErrIntegrity, path)
		default:
			found[path] = true
		}
		return nil
	})
	return found, err
}

// A Summary is what a package holds, in short.
type Summary struct {
	Manifest        *Manifest          `json:"manifest"`
	Actions         []world.ActionSpec `json:"actions"`
	StateFieldCount int                `json:"state_field_count"`
	RuleCount       int                `json:"rule_count"`
	InvariantCount  int                `json:"invariant_count"`
	RendererCount   int                `json:"renderer_count"`
	NoteCount       int                `json:"note_count"`
}

// Summary counts what the package holds.
func (b *Book) Summary() Summary {
	k := b.Engine.Knowledge()
	return Summary{&b.Manifest, k.Actions, len(k.Fields), len(k.Rules), len(k.Invariants), len(k.Renderers), len(k.Notes)}
}

// Artifacts reads what the package was compiled from, and how, and checks that
// they are those its manifest names.
func (b *Book) Artifacts() (*Artifacts, *Config, error) {
	text, err := b.read(artifactsFile)
	if err != nil {
		return nil, nil, err
	}
	var a Artifacts
	if err := world.Decode(text, &a); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", artifactsFile, err)
	}
	if text, err = b.read(configFile); err != nil {
		return nil, nil, err
	}
	var c Config
	if err := world.Decode(text, &c); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", configFile, err)
	}
	for _, d := range []struct {
		what, want string
		of         func() (string, error)
	}{{"artifact", b.Manifest.ArtifactDigest(), a.Digest}, {"configuration", b.Manifest.ConfigDigest(), c.Digest}} {
		got, err := d.of()
		if err != nil {
			return nil, nil, err
		}
		if got != d.want {
			return nil, nil, fmt.Errorf("%s: %w: the %s digest is %s, the manifest says %s", b.dir, ErrIntegrity, d.what, got, d.want)
		}
	}
	return &a, &c, nil
}

// IsOf reports whether the package plays what the artifacts say: its run-time files
// are those that would be compiled from them. The error is [ErrIntegrity].
func (b *Book) IsOf(a *Artifacts, c *Config) error {
	scope, err := c.Context()
	if err != nil {
		return err
	}
	rules, err := executable(a, c, scope, b.Extended())
	if err != nil {
		return err
	}
	k := b.Engine.Knowledge()
	for _, part := range []struct {
		what     string
		has, got any
	}{
		{"actions", k.Actions, a.ActionSchema.Actions}, {"state fields", k.Fields, a.StateSchema.Fields}, {"rules", k.Rules, rules},
		{"invariants", k.Invariants, a.Invariants}, {"renderers", k.Renderers, a.Renderers},
	} {
		has, err1 := world.AppendDocument(nil, part.has)
		got, err2 := world.AppendDocument(nil, part.got)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if !bytes.Equal(has, got) {
			return fmt.Errorf("%s: %w: the %s that it plays are not those of %s", b.dir, ErrIntegrity, part.what, artifactsFile)
		}
	}
	return nil
}

// Extended reports whether the package may use what the plain format does not
// have.
func (b *Book) Extended() bool { return b.Engine.Knowledge().Extended }
