package book

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/callsheet/callsheet/internal/disk"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/engine"
)

func scopeKey(key string) string { return engine.ScopeKey(key) }

// WriteOptions say how a package is written. The zero value writes what any
// reader of the format takes.
type WriteOptions struct {
	// Extended allows what the plain format does not have; see [Extension].
	Extended bool
	// Report is the passing replay that makes the package validated, as its
	// JSON document; none for a candidate. The replay room checks it.
	Report value.Value
	// Created is the time in the manifest. Zero: the latest time of an event,
	// else 1970, so that the bytes are a function of the inputs.
	Created time.Time
}

// ErrInside is what a path is refused with to which nothing may be written,
// because it is at or below a worldbook.
var ErrInside = errors.New("nothing is written into a worldbook")

// Outside refuses a path at or below a worldbook, one on the way there that a
// link leads into included: whatever is put there makes it one that is not
// intact. The path need not exist.
func Outside(path string) error {
	at, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	whole := true // the path is there
	for {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			at = real
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		up := filepath.Dir(at)
		if up == at {
			return err
		}
		at, whole = up, false
	}
	begin := at
	if !whole {
		begin = ""
	}
	for {
		if isPackage(at) {
			if at == begin {
				return fmt.Errorf("%s is a worldbook: %w; choose another place", path, ErrInside)
			}
			return fmt.Errorf("%s is inside the worldbook %s: %w; choose another place", path, at, ErrInside)
		}
		up := filepath.Dir(at)
		if up == at {
			return nil
		}
		at = up
	}
}

// isPackage reports whether a directory looks like a worldbook.
func isPackage(dir string) bool {
	for _, name := range []string{"manifest.json", "action_schema.json", "state_schema.json"} {
		if st, err := os.Lstat(filepath.Join(dir, name)); err != nil || !st.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// Write compiles artifacts into a package at dir, which must not exist. All of
// it is written beside it, synced, and renamed, so that dir is never seen half
// done; what was started is removed when it fails.
func Write(dir string, a *Artifacts, c *Config, o WriteOptions) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s exists already; a worldbook is never changed, write a new one: %w", dir, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := Outside(dir); err != nil {
		return err
	}
	if err := a.Check(c, o.Extended); err != nil {
		return world.Faultf(world.ValueError, "%v", err)
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".building-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(stage))
		}
	}()
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	w := &writer{stage: stage, hashes: Hashes{}, dirs: map[string]bool{".": true}}
	if err := w.all(a, c, o); err != nil {
		return err
	}
	for d := range w.dirs {
		if err := disk.SyncDir(filepath.Join(stage, filepath.FromSlash(d))); err != nil {
			return err
		}
	}
	// Rename fails when something with content has appeared at dir.
	if err := os.Rename(stage, dir); err != nil {
		return err
	}
	return disk.SyncDir(parent)
}

type writer struct {
	stage  string
	hashes Hashes
	dirs   map[string]bool
	err    error // the first error; later calls do nothing
}

// file writes and syncs one file, and keeps its hash.
func (w *writer) file(name string, text []byte) {
	if w.err != nil {
		return
	}
	w.err = func() error {
		for d := path.Dir(name); !w.dirs[d]; d = path.Dir(d) {
			w.dirs[d] = true
		}
		full := filepath.Join(w.stage, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		sum := sha256.Sum256(text)
		w.hashes[name] = hex.EncodeToString(sum[:])
		return err
	}()
}

func (w *writer) document(name string, x any) {
	text, err := world.AppendDocument(nil, x)
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("%s: %w", name, err)
	}
	w.file(name, text)
}

func lines[T any](w *writer, name string, xs []T) {
	var b strings.Builder
	if err := world.WriteLines(&b, xs); err != nil && w.err == nil {
		w.err = fmt.Errorf("%s: %w", name, err)
	}
	w.file(name, []byte(b.String()))
}

// executable are the rules that may run in some state of the package's scope.
func executable(a *Artifacts, c *Config, scope world.Scope, extended bool) ([]world.Rule, error) {
	ctx := map[string]string{}
	for _, e := range scope {
		ctx[e.Key] = e.Value
	}
	e, err := engine.New(knowledge(a, a.Rules, ctx, float64(c.MinRuleConfidence), extended))
	if err != nil {
		return nil, err
	}
	out := []world.Rule{}
	none, err := e.Initial()
	if err != nil {
		return nil, err
	}
	for i := range a.Rules {
		if e.Eligible(&a.Rules[i], none, true) {
			out = append(out, a.Rules[i])
		}
	}
	return out, nil
}

func (w *writer) all(a *Artifacts, c *Config, o WriteOptions) error {
	scope, err := c.Context()
	if err != nil {
		return err
	}
	rules, err := executable(a, c, scope, o.Extended)
	if err != nil {
		return err
	}
	w.document(artifactsFile, a)
	w.document(configFile, c)
	lines(w, "candidates/rules.jsonl", a.Rules)
	lines(w, "evidence/episodes.jsonl", a.Episodes)
	lines(w, "evidence/transitions.jsonl", a.Transitions)
	w.document("evidence/sources.json", a.SourceSnapshots)
	lines(w, "evidence/local_transitions.jsonl", a.Evidence)
	if !o.Report.IsZero() {
		w.document(reportFile, o.Report)
	}
	w.file("overview.md", overview(a, c, len(rules)))
	w.document("action_schema.json", a.ActionSchema)
	w.document("state_schema.json", a.StateSchema)
	w.document("invariants.json", a.Invariants)
	lines(w, "rules/index.jsonl", rules)
	lines(w, "demonstrations/transitions.jsonl", a.Demonstrations)
	lines(w, "knowledge/notes.jsonl", a.Notes)
	w.document("renderer/contracts.json", a.Renderers)
	w.document("exceptions/unresolved.json", a.Unresolved)
	w.document("exceptions/rejected.json", a.Rejected)
	var slugs []string
	grouped := map[string][]world.Rule{}
	for _, r := range rules {
		s := slug(r.ActionType)
		if grouped[s] == nil {
			slugs = append(slugs, s)
		}
		grouped[s] = append(grouped[s], r)
	}
	for _, s := range slugs {
		lines(w, "rules/by_action/"+s+".jsonl", grouped[s])
	}
	if w.err != nil {
		return w.err
	}
	if err := writeIndex(filepath.Join(w.stage, indexFile), a, rules); err != nil {
		return fmt.Errorf("%s: %w", indexFile, err)
	}
	index, err := os.ReadFile(filepath.Join(w.stage, indexFile))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(index)
	w.hashes[indexFile] = hex.EncodeToString(sum[:])
	m, err := manifest(a, c, scope, o)
	if err != nil {
		return err
	}
	if err := w.readsBack(m); err != nil {
		return err
	}
	m.Files = w.hashes
	text, err := world.AppendDocument(nil, m)
	if err != nil {
		return err
	}
	w.file("manifest.json", text)
	return w.err
}

// readsBack refuses artifacts that are others once they are written and read: the
// package could never be patched or promoted.
func (w *writer) readsBack(m *Manifest) error {
	text, err := os.ReadFile(filepath.Join(w.stage, filepath.FromSlash(artifactsFile)))
	if err != nil {
		return err
	}
	var a Artifacts
	if err := world.Decode(text, &a); err != nil {
		return world.Faultf(world.ValueError, "what was written cannot be read: %s: %v", artifactsFile, err)
	}
	digest, err := a.Digest()
	if err == nil && digest != m.ArtifactDigest() {
		return world.Faultf(world.ValueError, "what was written reads as something else: the artifact digest is %s, and was %s", digest, m.ArtifactDigest())
	}
	return err
}

func manifest(a *Artifacts, c *Config, scope world.Scope, o WriteOptions) (*Manifest, error) {
	artifacts, err := a.Digest()
	if err != nil {
		return nil, err
	}
	config, err := c.Digest()
	if err != nil {
		return nil, err
	}
	status := Candidate
	if c.ConstructionKind == Authored {
		status = ByHand
	}
	if !o.Report.IsZero() {
		status = Validated
	}
	tenant := value.NullValue()
	if c.TenantScope != nil {
		tenant = value.MustText(*c.TenantScope)
	}
	var ctx []value.Member
	for _, e := range scope {
		ctx = append(ctx, value.Member{Key: e.Key, Value: value.MustText(e.Value)})
	}
	min, err := value.Of(c.MinRuleConfidence)
	if err != nil {
		return nil, err
	}
	text := value.MustText
	meta := []value.Member{
		{Key: "compiler", Value: text("callsheet")},
		{Key: "reconstruction_model", Value: text(c.Model)},
		{Key: "tenant_scope", Value: tenant},
		{Key: "unresolved_count", Value: value.Int(int64(len(a.Unresolved)))},
		{Key: "scope_context", Value: value.ObjectOf(ctx...)},
		{Key: "min_rule_confidence", Value: min},
		{Key: "construction_kind", Value: text(c.ConstructionKind)},
		{Key: "artifact_digest", Value: text(artifacts)},
		{Key: "config_digest", Value: text(config)},
		{Key: "validation_status", Value: text(string(status))},
	}
	if c.Ablation != nil && *c.Ablation != "" {
		meta = append(meta, value.Member{Key: "ablation", Value: text(*c.Ablation)})
	}
	if o.Extended {
		meta = append(meta, value.Member{Key: "extensions", Value: world.Texts(Extension)})
	}
	created := o.Created
	if created.IsZero() {
		created = latest(a)
	}
	return &Manifest{SchemaVersion: "1.1", EnvironmentID: c.EnvironmentID, Name: c.Name, Description: c.Description, Version: "0.1.0",
		CreatedAt: created.UTC().Format(time.RFC3339Nano), Domains: c.Domains, SourceCount: int64(len(a.Episodes)),
		TransitionCount: int64(len(a.Transitions)), Metadata: value.ObjectOf(meta...)}, nil
}

// latest is the latest time of an event, 1970 without one.
func latest(a *Artifacts) time.Time {
	last := time.Unix(0, 0)
	for i := range a.Episodes {
		for j := range a.Episodes[i].Events {
			ts := a.Episodes[i].Events[j].Timestamp
			if ts == nil {
				continue
			}
			if t, err := time.Parse(time.RFC3339Nano, *ts); err == nil && t.After(last) {
				last = t
			}
		}
	}
	return last
}

func overview(a *Artifacts, c *Config, rules int) []byte {
	description := c.Description
	if description == "" {
		description = "An environment rebuilt from recorded interactions."
	}
	domains := strings.Join(c.Domains, ", ")
	if domains == "" {
		domains = "unspecified"
	}
	return fmt.Appendf(nil, "# %s\n\n%s\n\nA worldbook: what is known of an environment, and the recordings that say so. It is never changed; "+
		"what happens in an episode is kept elsewhere.\n\n- Environment: `%s`\n- Domains: %s\n- Episodes: %d\n- Pieces of evidence: %d\n- Executable rules: %d\n",
		c.Name, description, c.EnvironmentID, domains, len(a.Episodes), len(a.Evidence), rules)
}

// slug is an action type as a file name.
func slug(s string) string {
	var b strings.Builder
	run := false // inside a run of characters that a file name should not have
	for i := range len(s) {
		c := s[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
		switch {
		case ok:
			b.WriteByte(c)
		case !run:
			b.WriteByte('_')
		}
		run = !ok
	}
	if out := strings.Trim(b.String(), "_"); out != "" && out != "." && out != ".." {
		return out
	}
	return "unknown"
}
