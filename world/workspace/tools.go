package workspace

import (
	"context"
	"slices"
	"strconv"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
)

// Features add to what tools and brief show (spec/world-reference.md §3.12).
type Features struct {
	History  bool // read_turn, and whole turns in memory views
	Compact  bool // no copies of what the brief shows already
	Unknown  bool // what is absent is said to be unknown; long texts of the state can be paged
	Evidence bool // read_evidence, and summaries in place of clipped turns
}

// Limits of what tools show, in characters and items. The zero value is the
// format's: 1500, 8, 6000, 24000 and 3.
type Limits struct {
	Text       int // of one text
	List       int // items of a list when no limit is asked for; never more than 25
	Turn       int // of one remembered observation
	Full       int // of one that is shown whole
	RecallFull int // remembered turns that are shown whole
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		n    *int
		want int
	}{{&l.Text, 1500}, {&l.List, 8}, {&l.Turn, 6000}, {&l.Full, 24000}, {&l.RecallFull, 3}} {
		if *d.n <= 0 {
			*d.n = d.want
		}
	}
	return l
}

// maxList is the most items that a list tool returns.
const maxList = 25

// A Memory is what the tools need of an episode's memory.
type Memory interface {
	Recent(ctx context.Context, n int) ([]session.Entry, error)
	Search(ctx context.Context, query string, n int) ([]session.Entry, error)
	ByTurn(ctx context.Context, turn int64) ([]session.Entry, error)
}

// Tools are the workspace of one step: everything that an agent may look at
// before it submits. They change nothing. What they show is noted, so that a
// submission can be held to it.
type Tools struct {
	Book     *book.Book
	State    state.State  // the working copy
	Action   world.Action // canonical
	Memory   Memory       // nil: none
	Features Features
	Limits   Limits
	// Withhold keeps the templates of rules to itself, because the caller's own
	// input documents the format of observations.
	Withhold bool
	// HideKnowledge leaves out the tools that read the worldbook, HideState
	// those that read or try the state.
	HideKnowledge, HideState bool

	shown      map[string]bool
	discovered []*world.Rule
}

// Shown are the ids of everything that was shown, sorted.
func (t *Tools) Shown() []string {
	ids := make([]string, 0, len(t.shown))
	for id := range t.shown {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Discovered are the rules that were found, in order.
func (t *Tools) Discovered() []*world.Rule { return t.discovered }

func (t *Tools) show(ids ...string) {
	if t.shown == nil {
		t.shown = map[string]bool{}
	}
	for _, id := range ids {
		t.shown[id] = true
	}
}

func (t *Tools) discover(r *world.Rule) {
	if !slices.Contains(t.discovered, r) {
		t.discovered = append(t.discovered, r)
	}
}

func (t *Tools) engine() *engine.Engine { return t.Book.Engine }

// A handler answers one tool. A fault is the answer of a call that went wrong;
// any other error is the harness's.
type handler func(ctx context.Context, args value.Value) (value.Value, error)

// Set is the catalogue in its fixed order, with handlers. The submission is not
// in it: it is no call.
func (t *Tools) Set() (*tool.Set, error) {
	t.Limits = t.Limits.withDefaults()
	var tools []tool.Tool
	add := func(name, description, input string, h handler) {
		s, err := schema.Compile(value.MustParse(input))
		if err != nil {
			panic("workspace: the schema of " + name + ": " + err.Error())
		}
		tools = append(tools, tool.Tool{
			Declaration: tool.Declaration{Name: name, Description: description, Input: s, Source: "world",
				Effects: tool.Effects{ReadOnly: true, Idempotent: true}},
			Handler: func(ctx context.Context, c *tool.Call) (value.Value, error) {
				v, err := h(ctx, c.Args)
				if world.IsFault(err) {
					return failed(world.Named(err)), nil
				}
				return v, err
			},
		})
	}
	const page = `"offset":{"type":"integer","minimum":0},"length":{"type":"integer","minimum":1}`
	if !t.HideKnowledge {
		t.knowledgeTools(add)
	}
	if !t.HideState {
		t.stateTools(add)
	}
	add("recall", "Search what happened earlier in this episode: actions and their observations.",
		`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["query"]}`, t.recall)
	add("recent_turns", "Show the latest turns of this episode with their observations, oldest first.",
		`{"type":"object","properties":{"limit":{"type":"integer","minimum":1}}}`, t.recentTurns)
	if t.Features.History {
		add("read_turn", "Read an exact part of the observation of an earlier turn; page through a long one with offset and length.",
			`{"type":"object","properties":{"turn":{"type":"integer","minimum":0},`+page+`},"required":["turn"]}`, t.readTurn)
	}
	if t.Features.Evidence && !t.HideKnowledge {
		add("read_evidence", "Read a recorded turn that the worldbook was made from: its action, an exact part of its observation, and which turns were beside it.",
			`{"type":"object","properties":{"id":{"type":"string"},`+page+`},"required":["id"]}`, t.readEvidence)
	}
	if !t.HideState {
		t.trialTools(add)
	}
	return tool.NewSet(tools...)
}

type adder func(name, description, input string, h handler)

func (t *Tools) knowledgeTools(add adder) {
	add("list_actions", "List the actions that the environment knows, with their aliases and the names of their arguments.",
		`{"type":"object","properties":{}}`, t.listActions)
	add("inspect_action", "Show what is known of an action: its declaration, the rules that are eligible now, how observations are written, demonstrations, notes, and the invariants.",
		`{"type":"object","properties":{"action_type":{"type":"string"}},"required":["action_type"]}`, t.inspectAction)
	add("search_knowledge", "Search rules, notes, demonstrations, evidence (turns that were really observed) and actions by words. Good for formats, the shape of errors, and examples.",
		`{"type":"object","properties":{"query":{"type":"string"},"kinds":{"type":"array","items":{"type":"string","enum":["rule","note","demonstration","evidence","action"]}},"limit":{"type":"integer","minimum":1}},"required":["query"]}`, t.searchKnowledge)
}

func (t *Tools) stateTools(add adder) {
	add("read_state", "Read the state at a dotted path such as world.balance; without a path, a summary of all of it.",
		`{"type":"object","properties":{"path":{"type":"string"}}}`, t.readState)
	add("state_schema", "Describe the declared paths of the state, or those that begin with a prefix.",
		`{"type":"object","properties":{"prefix":{"type":"string"}}}`, t.stateSchema)
}

func (t *Tools) trialTools(add adder) {
	add("apply_rule", "Try a rule on the current state: whether it applies, its effects, what would change, what would be observed, and whether the invariants hold. Nothing is changed.",
		`{"type":"object","properties":{"rule_id":{"type":"string"}},"required":["rule_id"]}`, t.applyRule)
	add("dry_run", "Try effects on a copy of the state: what would change, and whether the invariants hold. Nothing is changed.",
		`{"type":"object","properties":{"effects":{"type":"array","items":`+mutationSchema+`}},"required":["effects"]}`, t.dryRun)
}

const mutationSchema = `{"type":"object","additionalProperties":false,"required":["op","path"],"properties":{
	"op":{"enum":["set","delete","increment","decrement","append","create","schedule","merge","remove"]},
	"path":{"type":"string"},"value":{},"delay_steps":{"anyOf":[{"type":"integer","minimum":0},{"type":"null"}]}}}`

func failed(text string) value.Value { return obj("error", value.MustText(text)) }

// obj is an object of alternating names and values.
func obj(kv ...any) value.Value {
	ms := make([]value.Member, 0, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		ms = append(ms, value.Member{Key: kv[i].(string), Value: of(kv[i+1])})
	}
	return value.ObjectOf(ms...)
}

// of is a document of the format as a value; all of them can be written.
func of(x any) value.Value {
	v, err := value.Of(x)
	if err != nil {
		panic("workspace: a document that cannot be written: " + err.Error())
	}
	return v
}

// text reads an argument as str() does; "" when it is missing or null.
func text(args value.Value, name string) string {
	v, ok := args.Get(name)
	if !ok || v.IsNull() {
		return ""
	}
	return python.Str(v)
}

// integer reads an argument as int() does; ok is false when it is missing, null
// or 0, for which every tool has a default.
func integer(args value.Value, name string) (n int64, ok bool, err error) {
	v, found := args.Get(name)
	if !found || v.IsNull() {
		return 0, false, nil
	}
	switch v.Kind() {
	case value.Bool:
		if b, _ := v.Bool(); b {
			n = 1
		}
	case value.Number, value.String:
		s, isText := v.Text()
		if !isText {
			s, _ = v.Number()
		}
		if n, err = strconv.ParseInt(s, 10, 64); err != nil {
			f, ferr := strconv.ParseFloat(s, 64)
			if isText || ferr != nil || f > 1<<53 || f < -(1<<53) {
				return 0, false, world.Faultf(world.ValueError, "%s must be an integer", name)
			}
			n = int64(f)
		}
	default:
		return 0, false, world.Faultf("TypeError", "%s must be an integer, not %s", name, python.TypeName(v))
	}
	return n, n != 0, nil
}

// limit is how many items are asked for.
func (t *Tools) limit(args value.Value) (int, error) {
	n, ok, err := integer(args, "limit")
	if err != nil {
		return 0, err
	}
	if !ok {
		n = int64(t.Limits.List)
	}
	return int(min(n, maxList)), nil
}

// span is the part of a text that is asked for.
func (t *Tools) span(args value.Value, length int) (offset, n int, err error) {
	o, _, err := integer(args, "offset")
	if err != nil {
		return 0, 0, err
	}
	l, ok, err := integer(args, "length")
	if err != nil {
		return 0, 0, err
	}
	if !ok {
		l = int64(length)
	}
	const most = 1 << 40 // beyond every text, and far from overflow
	return int(min(max(0, o), most)), int(max(1, min(l, int64(t.Limits.Full)))), nil
}

// page is part of a text, and where the next part begins.
func page(s string, offset, length int) (total, got int, part string, next value.Value) {
	total = python.Runes(s)
	next = value.NullValue()
	if offset+length < total {
		next = value.Int(int64(offset + length))
	}
	return total, min(length, max(0, total-offset)), python.Slice(s, offset, offset+length), next
}
