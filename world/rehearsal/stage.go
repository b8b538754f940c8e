package rehearsal

import (
	"crypto/sha256"
	"fmt"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/state"
)

// A Stage answers from one worldbook. It is safe for concurrent use.
type Stage struct {
	b     *book.Book
	o     Options
	turns map[key][]*recorded

	// tried: the rules were written by hand or have passed a replay, so what they
	// say of the state is all that there is to say. Only then do equal states
	// make equal answers; a rule that explains one effect of two would hide the
	// other.
	tried bool
	// whole: the state that is begun with has everything, so that what is missing
	// in it is not there.
	whole bool
	begin [sha256.Size]byte // the key of no effectful call in the state that is begun with
	forms map[string]form   // of the outputs that were recorded, by tool
}

// key is a call in a state of an episode: the tool, its arguments by value, and
// where the episode stood: the digest of the effectful calls before it, or that
// of its state.
type key struct {
	tool string
	args [sha256.Size]byte
	at   [sha256.Size]byte
}

// form is what the outputs of a tool look like.
type form struct{ texts, others bool }

type recorded struct {
	id      string
	output  value.Value
	failure *tool.Failure
}

func (r *recorded) same(o *recorded) bool {
	if (r.failure == nil) != (o.failure == nil) {
		return false
	}
	if r.failure != nil {
		return r.failure.Code == o.failure.Code && r.failure.Message == o.failure.Message
	}
	return value.Equal(r.output, o.output)
}

// New reads the recordings of a worldbook. One without any is a stage that
// knows rules only.
func New(b *book.Book, o Options) (*Stage, error) {
	if o.Effectful == nil {
		o.Effectful = func(string) bool { return true }
	}
	s := &Stage{b: b, o: o, turns: map[key][]*recorded{}, forms: map[string]form{}}
	s.whole = b.Manifest.Kind() == book.Authored
	s.tried = s.whole || b.Manifest.Status() == book.Validated
	begin, err := s.recorded()
	if err != nil {
		return nil, err
	}
	if o.Initial != nil {
		if err := b.Engine.CheckTypes(*o.Initial); err != nil {
			return nil, fmt.Errorf("initial state: %w", err)
		}
		if given := o.Initial.Value(); !python.Equal(given, begin.Value()) {
			s.begin = sha256.Sum256([]byte("given " + given.String()))
		}
	}
	eps, slices, err := b.Recording()
	if err != nil {
		return nil, err
	}
	ev, err := b.Evidence()
	if err != nil {
		return nil, err
	}
	byEpisode := map[string][]*episode.Slice{}
	for i := range slices {
		byEpisode[slices[i].EpisodeID] = append(byEpisode[slices[i].EpisodeID], &slices[i])
	}
	for i := range eps {
		s.learn(&eps[i], byEpisode[eps[i].ID], ev, begin)
	}
	return s, nil
}

// initial is the state that a rehearsal begins in.
func (s *Stage) initial() (state.State, error) {
	if s.o.Initial != nil {
		return *s.o.Initial, nil
	}
	return s.recorded()
}

// recorded is the state that the recordings began in, as far as anybody knows.
func (s *Stage) recorded() (state.State, error) {
	if s.whole {
		return s.b.Engine.Initial()
	}
	return state.Empty(), nil
}

// learn indexes the turns of an episode up to where its state is no longer
// determined: by an effectful call that has no certain result, or that was
// under way together with others.
func (s *Stage) learn(e *episode.Episode, slices []*episode.Slice, ev *book.Evidence, st state.State) {
	effectful := make(map[string]bool, len(slices)) // by event
	for _, sl := range slices {
		a, ok := episode.ReadAction(sl.ActionOf(e))
		effectful[sl.Actions[0]] = !ok || s.o.Effectful(a.Type)
	}
	var before [sha256.Size]byte
	known := s.tried // st is the state of the episode
	for _, sl := range slices {
		a, ok := episode.ReadAction(sl.ActionOf(e))
		changes := effectful[sl.Actions[0]]
		beside := false // an effectful call was under way at the same time
		for _, c := range sl.Concurrent {
			beside = beside || effectful[c]
		}
		certain := ok && sl.Alignment != episode.Ambiguous
		if changes && (!certain || len(sl.Concurrent) > 0) {
			return
		}
		results := sl.ResultsOf(e)
		if certain && !beside && len(results) == 1 {
			r := &recorded{id: "event:" + results[0].ID}
			if record := ev.Resolve("evidence_" + sl.ID); record != nil {
				r.id = "evidence:" + record.ID
			}
			r.output, r.failure = output(results[0])
			if r.failure == nil {
				f := s.forms[a.Type]
				isText := r.output.Kind() == value.String
				s.forms[a.Type] = form{f.texts || isText, f.others || !isText}
			}
			args := argsKey(a.Arguments)
			k := key{a.Type, args, before}
			s.turns[k] = append(s.turns[k], r)
			if known {
				if at, ok := stateKey(st); ok {
					k.at = at
					s.turns[k] = append(s.turns[k], r)
				}
				st, known = s.follow(st, a, r.text(), changes)
			}
		} else {
			known = known && !changes && len(st.Pending()) == 0
		}
		if changes {
			before = after(before, a.Type, a.Arguments)
		}
	}
}

// follow is the state after a turn, and whether it is known.
func (s *Stage) follow(st state.State, a world.Action, text string, changes bool) (state.State, bool) {
	working, _, err := st.Advance()
	if err != nil {
		return st, false
	}
	if c, err := s.b.Engine.Canonical(a); err == nil {
		a = c
	}
	_, next, ok := s.b.Engine.Follow(st, working, a, text)
	return next, ok || !changes
}

// text is the result as an environment prints it.
func (r *recorded) text() string {
	if r.failure != nil {
		return r.failure.Message
	}
	if text, ok := r.output.Text(); ok {
		return text
	}
	return r.output.String()
}

// stateKey is the digest of a state without its counters. ok is false when
// something is due in it, which depends on them.
func stateKey(s state.State) (at [sha256.Size]byte, ok bool) {
	if len(s.Pending()) > 0 {
		return at, false
	}
	h := sha256.New()
	h.Write([]byte("state"))
	for _, name := range world.Namespaces {
		at := argsKey(s.Namespace(name))
		h.Write(at[:])
	}
	return [sha256.Size]byte(h.Sum(nil)), true
}

// after is the state of an episode after one more effectful call.
func after(before [sha256.Size]byte, name string, args value.Value) [sha256.Size]byte {
	h := sha256.New()
	h.Write(before[:])
	k := argsKey(args)
	fmt.Fprintf(h, "%d:%s", len(name), name)
	h.Write(k[:])
	return [sha256.Size]byte(h.Sum(nil))
}

// argsKey is the digest of arguments with numbers by value: 1, 1.0 and 1e0 are
// one, and an integer that no float holds is none but itself.
func argsKey(args value.Value) [sha256.Size]byte {
	return sha256.Sum256(python.Append(nil, byValue(args), python.DigestStyle))
}

func byValue(v value.Value) value.Value {
	switch v.Kind() {
	case value.Number:
		lit, _ := v.Number()
		return value.MustText("number " + python.CanonicalNumber(lit))
	case value.String:
		s, _ := v.Text()
		return value.MustText("text " + s)
	case value.List:
		vs := make([]value.Value, 0, v.Len())
		for _, e := range v.Elements() {
			vs = append(vs, byValue(e))
		}
		return value.ListOf(vs...)
	case value.Object:
		ms := make([]value.Member, 0, v.Len())
		for k, m := range v.Members() {
			ms = append(ms, value.Member{Key: k, Value: byValue(m)})
		}
		return value.ObjectOf(ms...)
	}
	return v
}

// output is the result of a call as a tool returns it: the structured content
// of an MCP result, else the text of its parts, else the content as it is.
func output(e *episode.Event) (value.Value, *tool.Failure) {
	out := e.Content
	if e.IsMCP() {
		if v, ok := out.Get("structuredContent"); ok && !v.IsNull() {
			out = v
		} else if c, ok := out.Get("content"); ok && c.Kind() == value.List {
			out = value.MustText(episode.ResultText(e))
		}
	}
	if e.Kind != episode.Error {
		return out, nil
	}
	f := &tool.Failure{Code: tool.CodeToolError, Message: episode.ResultText(e)}
	if code, ok := out.Get("code"); ok && code.Kind() == value.String {
		f.Code, _ = code.Text()
		if m, ok := out.Get("message"); ok && m.Kind() == value.String {
			f.Message, _ = m.Text()
		}
	}
	return value.Value{}, f
}
