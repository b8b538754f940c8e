package book

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/go-json-experiment/json"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

const indexFile = "index.sqlite"

// indexSchema is that of the format (spec/world-reference.md §4).
const indexSchema = `
CREATE TABLE rules (id TEXT PRIMARY KEY, action_type TEXT NOT NULL, priority INTEGER NOT NULL, confidence REAL NOT NULL,
	status TEXT NOT NULL, description TEXT NOT NULL, artifact_path TEXT NOT NULL);
CREATE INDEX rules_action_idx ON rules(action_type, priority DESC);
CREATE TABLE demonstrations (id TEXT PRIMARY KEY, action_type TEXT NOT NULL, observation TEXT NOT NULL, artifact_path TEXT NOT NULL);
CREATE INDEX demo_action_idx ON demonstrations(action_type);
CREATE TABLE state_fields (path TEXT PRIMARY KEY, type TEXT NOT NULL, description TEXT NOT NULL, visibility TEXT NOT NULL);
CREATE TABLE knowledge (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, ref_id TEXT NOT NULL, action_type TEXT NOT NULL,
	text TEXT NOT NULL, artifact_path TEXT NOT NULL);
CREATE INDEX knowledge_kind_idx ON knowledge(kind, action_type);
CREATE VIRTUAL TABLE knowledge_fts USING fts5(kind UNINDEXED, ref_id UNINDEXED, action_type, text, content='knowledge', content_rowid='id');
`

// writeIndex writes the full-text index. The same artifacts give the same
// bytes: one connection, one transaction, rows in the order of the artifacts.
func writeIndex(file string, a *Artifacts, rules []world.Rule) (err error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?_pragma=journal_mode(memory)&_pragma=synchronous(off)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	closed := false
	defer func() {
		if !closed {
			err = errors.Join(err, db.Close())
		}
	}()
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(indexSchema); err != nil {
		return err
	}
	insert := func(query string) func(args ...any) error {
		st, perr := tx.Prepare(query)
		return func(args ...any) error {
			if perr != nil {
				return perr
			}
			_, err := st.Exec(args...)
			return err
		}
	}
	byAction := func(action string) string { return "rules/by_action/" + slug(action) + ".jsonl" }
	addRule := insert("INSERT INTO rules VALUES (?,?,?,?,?,?,?)")
	addDemo := insert("INSERT INTO demonstrations VALUES (?,?,?,?)")
	addField := insert("INSERT INTO state_fields VALUES (?,?,?,?)")
	add := insert("INSERT INTO knowledge(kind, ref_id, action_type, text, artifact_path) VALUES (?,?,?,?,?)")
	for _, r := range rules {
		if err := addRule(r.ID, r.ActionType, r.Priority, float64(r.Confidence), r.Status, r.Description, byAction(r.ActionType)); err != nil {
			return err
		}
	}
	for _, d := range a.Demonstrations {
		if err := addDemo(d.ID, d.Action.Type, d.Observation, "demonstrations/transitions.jsonl"); err != nil {
			return err
		}
	}
	for _, f := range a.StateSchema.Fields {
		if err := addField(f.Path, string(f.Type), f.Description, f.Visibility); err != nil {
			return err
		}
	}
	for _, s := range a.ActionSchema.Actions {
		if err := add("action", s.Name, s.Name, s.Name+": "+s.Description+" aliases: "+strings.Join(s.Aliases, ", "), "action_schema.json"); err != nil {
			return err
		}
	}
	for _, r := range rules {
		conditions, err := json.Marshal(r.Conditions)
		if err != nil {
			return err
		}
		shown := world.WithoutNulls(value.MustParse(string(conditions)))
		text := fmt.Sprintf("[%s, confidence %.2f] %s\noutcome: %s; conditions: %s", r.Status, float64(r.Confidence), r.Description, r.Outcome, shown)
		if err := add("rule", r.ID, r.ActionType, text, byAction(r.ActionType)); err != nil {
			return err
		}
	}
	for _, n := range a.Notes {
		if n.Status != world.Supported {
			continue
		}
		if err := add("note", n.ID, strings.Join(n.ActionTypes, ","), n.Kind+": "+n.Statement, "knowledge/notes.jsonl"); err != nil {
			return err
		}
	}
	for _, d := range a.Demonstrations {
		if err := add("demonstration", d.ID, d.Action.Type, d.Action.Text()+"\n"+d.Observation, "demonstrations/transitions.jsonl"); err != nil {
			return err
		}
	}
	for _, ev := range a.Evidence {
		if err := add("evidence", ev.ID, ev.Action.Type, ev.Action.Text()+"\n"+ev.ObservationText, "evidence/local_transitions.jsonl"); err != nil {
			return err
		}
	}
	if _, err := tx.Exec("INSERT INTO knowledge_fts(knowledge_fts) VALUES ('rebuild')"); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	closed = true
	if err := db.Close(); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Kinds of knowledge that can be searched.
var Kinds = [5]string{"rule", "note", "demonstration", "evidence", "action"}

// MaxTerms is how many words of a query are searched for: more make a query
// slow and its rank meaningless.
const MaxTerms = 12

// Terms are the words of a query: runs of letters and digits of any script, and
// of the characters that paths and names have. Accents stay with their letter.
func Terms(query string) []string {
	terms := strings.FieldsFunc(query, func(r rune) bool {
		return !(unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("_./-", r))
	})
	return terms[:min(len(terms), MaxTerms)]
}

// Match is a query as FTS5 takes it: each word quoted, any of them.
func Match(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = `"` + t + `"`
	}
	return strings.Join(quoted, " OR ")
}

// Like is a query as LIKE takes it with ESCAPE '\', matching it anywhere.
func Like(query string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(query) + "%"
}

// Unspaced reports whether a query has letters of a script that is written
// without spaces between words. The index takes a run of them as one word, so
// that a part of it is found by substring only (spec/world.md §3.7).
func Unspaced(query string) bool {
	return strings.ContainsFunc(query, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	})
}

// A Hit is one finding of a search.
type Hit struct {
	ID         string `json:"id"` // "kind:ref"
	Kind       string `json:"kind"`
	RefID      string `json:"ref_id"`
	ActionType string `json:"action_type"`
	Snippet    string `json:"snippet"`
	Text       string `json:"text"`
}

// Search finds knowledge by its words, best first: rules, notes,
// demonstrations, evidence and actions, or the kinds that are named. When no
// word is found the query is looked for as it stands; a blank one finds
// nothing.
func (b *Book) Search(ctx context.Context, query string, kinds []string, limit int) ([]Hit, error) {
	query = strings.TrimSpace(query)
	if query == "" || limit <= 0 {
		return nil, nil
	}
	var in []any
	for _, k := range kinds {
		for _, known := range Kinds {
			if k == known {
				in = append(in, k)
			}
		}
	}
	if len(in) == 0 {
		for _, k := range Kinds {
			in = append(in, k)
		}
	}
	db, err := b.database()
	if err != nil {
		return nil, err
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(in)), ",")
	var hits []Hit
	if terms := Terms(query); len(terms) > 0 {
		hits, err = search(ctx, db, `SELECT k.kind, k.ref_id, k.action_type, k.text, snippet(knowledge_fts, 3, '[', ']', '…', 24)
			FROM knowledge_fts f JOIN knowledge k ON k.id = f.rowid
			WHERE knowledge_fts MATCH ? AND k.kind IN (`+marks+`) ORDER BY rank, k.id LIMIT ?`, append(append([]any{Match(terms)}, in...), limit))
		if err != nil {
			return nil, fmt.Errorf("search %q: %w", query, err)
		}
	}
	if len(hits) > 0 && !(Unspaced(query) && len(hits) < limit) {
		return hits, nil
	}
	for _, part := range append([]string{query}, unspacedTerms(query)...) {
		more, err := search(ctx, db, `SELECT kind, ref_id, action_type, text, substr(text, 1, 200) FROM knowledge
			WHERE text LIKE ? ESCAPE '\' AND kind IN (`+marks+`) ORDER BY id LIMIT ?`, append(append([]any{Like(part)}, in...), limit))
		if err != nil {
			return nil, fmt.Errorf("search %q: %w", query, err)
		}
	next:
		for _, h := range more {
			for _, have := range hits {
				if have.ID == h.ID {
					continue next
				}
			}
			if len(hits) < limit {
				hits = append(hits, h)
			}
		}
	}
	return hits, nil
}

func unspacedTerms(query string) []string {
	var out []string
	for _, t := range Terms(query) {
		if Unspaced(t) && t != query {
			out = append(out, t)
		}
	}
	return out
}

func search(ctx context.Context, db *sql.DB, query string, args []any) ([]Hit, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var hits []Hit
	for rows.Next() {
		var h Hit
		if err := rows.Scan(&h.Kind, &h.RefID, &h.ActionType, &h.Text, &h.Snippet); err != nil {
			return nil, err
		}
		h.ID = h.Kind + ":" + h.RefID
		hits = append(hits, h)
	}
	return hits, rows.Err()
}

// database opens the index at its first use, read-only.
func (b *Book) database() (*sql.DB, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.db != nil {
		return b.db, nil
	}
	if b.closed {
		return nil, errors.New("the worldbook is closed")
	}
	file, err := filepath.Abs(filepath.Join(b.dir, indexFile))
	if err != nil {
		return nil, err
	}
	if _, err := b.read(indexFile); err != nil { // verified once more, as all that is read later
		return nil, err
	}
	b.db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?mode=ro&immutable=1")
	return b.db, err
}
