package world

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Namespaces are the four parts of a state: durable facts, the context of the
// interaction, what is visible, and what is explicitly uncertain.
var Namespaces = [4]string{"world", "session", "surface", "epistemic"}

// IsNamespace reports whether name is one of [Namespaces].
func IsNamespace(name string) bool {
	return name == Namespaces[0] || name == Namespaces[1] || name == Namespaces[2] || name == Namespaces[3]
}

// An Op is what a mutation does.
type Op string

// The operations (spec/world-reference.md §3.5).
const (
	Set       Op = "set"
	Create    Op = "create" // the same as Set
	Delete    Op = "delete"
	Increment Op = "increment"
	Decrement Op = "decrement"
	Append    Op = "append"
	Merge     Op = "merge"
	Remove    Op = "remove"
	Schedule  Op = "schedule"
)

// A Mutation changes the state at a path. A value may hold {"$action_arg": p},
// {action.arguments.p} tokens and, as an extension, {"$state_path": p}.
type Mutation struct {
	Op         Op          `json:"op"`
	Path       string      `json:"path"`
	Value      value.Value `json:"value"`
	DelaySteps *int64      `json:"delay_steps"`
}

// UnmarshalJSONFrom reads a mutation: the operation must be known, the path is
// brought into dotted form and must start with a namespace.
func (m *Mutation) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Mutation
	var p plain
	if err := strict(dec, &p); err != nil {
		return err
	}
	if p.Value.IsZero() {
		p.Value = value.NullValue()
	}
	out := Mutation(p)
	out.Path = NormalizePath(out.Path)
	if err := out.check(); err != nil {
		return err
	}
	*m = out
	return nil
}

func (m Mutation) check() error {
	if err := oneOf("op", string(m.Op), string(Set), string(Delete), string(Increment), string(Decrement), string(Append),
		string(Create), string(Schedule), string(Merge), string(Remove)); err != nil {
		return err
	}
	if head, _, _ := strings.Cut(m.Path, "."); !IsNamespace(head) {
		return fmt.Errorf("path %q must start with world, session, surface or epistemic", m.Path)
	}
	if m.DelaySteps != nil && *m.DelaySteps < 0 {
		return fmt.Errorf("delay_steps must not be negative")
	}
	return nil
}

// Brief is the mutation without its nulls, as tools show it and effects are
// compared.
func (m Mutation) Brief() value.Value {
	ms := []value.Member{{Key: "op", Value: value.MustText(string(m.Op))}, {Key: "path", Value: value.MustText(m.Path)}}
	if v := WithoutNulls(m.Value); !v.IsZero() && !v.IsNull() {
		ms = append(ms, value.Member{Key: "value", Value: v})
	}
	if m.DelaySteps != nil {
		ms = append(ms, value.Member{Key: "delay_steps", Value: value.Int(*m.DelaySteps)})
	}
	return value.ObjectOf(ms...)
}

// WithoutNulls drops the null members of an object, also inside.
func WithoutNulls(v value.Value) value.Value {
	switch v.Kind() {
	case value.Object:
		ms := make([]value.Member, 0, v.Len())
		for k, m := range v.Members() {
			if !m.IsNull() {
				ms = append(ms, value.Member{Key: k, Value: WithoutNulls(m)})
			}
		}
		return value.ObjectOf(ms...)
	case value.List:
		vs := make([]value.Value, 0, v.Len())
		for _, e := range v.Elements() {
			vs = append(vs, WithoutNulls(e))
		}
		return value.ListOf(vs...)
	}
	return v
}

// NormalizePath turns a["k"], a['k'] and a[k] into a.k; other paths are taken
// as they are. What it gives it would give back: brackets inside brackets are not
// left for a second look, which would see another path than the first.
func NormalizePath(path string) string {
	if strings.Count(path, "[") > maxBrackets {
		return path
	}
	for {
		next := unbracket(path)
		if next == path {
			return path
		}
		path = next
	}
}

// maxBrackets bounds the brackets that are looked at: a path with more of them is
// none that anybody wrote.
const maxBrackets = 64

func unbracket(path string) string {
	if !strings.Contains(path, "[") {
		return path
	}
	var b strings.Builder
	for path != "" {
		i := strings.IndexByte(path, '[')
		if i < 0 {
			break
		}
		end := strings.IndexByte(path[i:], ']')
		if end < 0 {
			break
		}
		key := path[i+1 : i+end]
		if n := len(key); n >= 2 && (key[0] == '"' || key[0] == '\'') && key[n-1] == key[0] {
			key = key[1 : n-1]
		} else if n >= 1 && (key[0] == '"' || key[0] == '\'') {
			// A bracket inside the quotes is the key's own.
			if close := strings.Index(path[i:], key[:1]+"]"); close > 1 {
				key, end = path[i+2:i+close], close+1
			}
		}
		b.WriteString(path[:i])
		b.WriteByte('.')
		b.WriteString(key)
		path = path[i+end+1:]
	}
	b.WriteString(path)
	return strings.ReplaceAll(b.String(), "..", ".")
}

// An Operand is a state path, an argument, or, without both, a literal.
type Operand struct {
	Path      *string     `json:"path"`
	ActionArg *string     `json:"action_arg"`
	Literal   value.Value `json:"literal"`
}

// UnmarshalJSONFrom reads an operand; a path and an argument at once are
// refused.
func (o *Operand) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Operand
	p := plain{Literal: value.NullValue()}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if p.Path != nil && p.ActionArg != nil {
		return fmt.Errorf("an operand has a path or an action_arg, not both")
	}
	*o = Operand(p)
	return nil
}

// A Condition compares two operands. As an extension of the format it may be a
// group instead: any, all or not (spec/world.md §3.6).
type Condition struct {
	Left  Operand
	Op    string // eq ne gt gte lt lte exists not_exists contains in; "" for a group
	Right *Operand

	Any, All []Condition
	Not      *Condition
}

// IsGroup reports whether c is one of the extended forms.
func (c Condition) IsGroup() bool { return c.Op == "" }

type leaf struct {
	Left  Operand  `json:"left"`
	Op    string   `json:"op"`
	Right *Operand `json:"right"`
}

// MarshalJSONTo writes the three members of a comparison, or the one of a
// group.
func (c Condition) MarshalJSONTo(enc *jsontext.Encoder) error {
	switch {
	case c.Not != nil:
		return json.MarshalEncode(enc, map[string]*Condition{"not": c.Not})
	case c.Any != nil:
		return json.MarshalEncode(enc, map[string][]Condition{"any": c.Any})
	case c.All != nil:
		return json.MarshalEncode(enc, map[string][]Condition{"all": c.All})
	}
	return json.MarshalEncode(enc, leaf{c.Left, c.Op, c.Right})
}

// UnmarshalJSONFrom reads a condition.
func (c *Condition) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var p struct {
		Left  *Operand    `json:"left"`
		Op    string      `json:"op"`
		Right *Operand    `json:"right"`
		Any   []Condition `json:"any"`
		All   []Condition `json:"all"`
		Not   *Condition  `json:"not"`
	}
	if err := strict(dec, &p); err != nil {
		return err
	}
	forms := 0
	for _, is := range []bool{p.Left != nil || p.Op != "", p.Any != nil, p.All != nil, p.Not != nil} {
		if is {
			forms++
		}
	}
	if forms != 1 {
		return fmt.Errorf("a condition is either left and op, or one of any, all, not")
	}
	*c = Condition{Op: p.Op, Right: p.Right, Any: p.Any, All: p.All, Not: p.Not}
	if p.Left == nil && p.Op == "" {
		return nil
	}
	if p.Left == nil {
		return fmt.Errorf("a condition needs a left operand")
	}
	c.Left = *p.Left
	return oneOf("op", c.Op, "eq", "ne", "gt", "gte", "lt", "lte", "exists", "not_exists", "contains", "in")
}

// Leaves calls f for every comparison in c, and stops when it returns false.
func (c *Condition) Leaves(f func(*Condition) bool) bool {
	if !c.IsGroup() {
		return f(c)
	}
	for _, group := range [][]Condition{c.Any, c.All} {
		for i := range group {
			if !group[i].Leaves(f) {
				return false
			}
		}
	}
	return c.Not == nil || c.Not.Leaves(f)
}

// Statuses of rules and notes.
const (
	Supported  = "supported"
	Tentative  = "tentative"
	Conflicted = "conflicted"
	Deprecated = "deprecated"
)

// A Rule says what an action does when its conditions hold.
type Rule struct {
	ID                  string      `json:"id"`
	ActionType          string      `json:"action_type"`
	Description         string      `json:"description"`
	Priority            int64       `json:"priority"`
	Conditions          []Condition `json:"conditions"`
	Effects             []Mutation  `json:"effects"`
	Outcome             Outcome     `json:"outcome"`
	Renderer            string      `json:"renderer"`
	ObservationTemplate *string     `json:"observation_template"`
	Confidence          Real        `json:"confidence"`
	Status              string      `json:"status"`
	Provenance          []SourceRef `json:"provenance"`
	Counterexamples     []SourceRef `json:"counterexamples"`
	Scope               Scope       `json:"scope"`
}

// UnmarshalJSONFrom reads a rule and gives it the format's defaults: success,
// renderer "default", confidence 1, supported.
func (r *Rule) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Rule
	p := plain{Outcome: Success, Renderer: "default", Confidence: 1, Status: Supported, Description: "\x00"}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if err := Needs("a rule", Field{Name: "id", There: p.ID != ""}, Field{Name: "action_type", There: p.ActionType != ""}, Field{Name: "description", There: p.Description != "\x00"}); err != nil {
		return err
	}
	if err := p.Outcome.check(); err != nil {
		return fmt.Errorf("rule %q: %w", p.ID, err)
	}
	if err := checkStatus(p.Status, p.Confidence); err != nil {
		return fmt.Errorf("rule %q: %w", p.ID, err)
	}
	*r = Rule(p)
	return nil
}

// UnmarshalJSON reads a rule from its text.
func (r *Rule) UnmarshalJSON(text []byte) error { return Decode(text, r) }

func checkStatus(status string, confidence Real) error {
	if confidence < 0 || confidence > 1 {
		return fmt.Errorf("confidence %v is not between 0 and 1", float64(confidence))
	}
	return oneOf("status", status, Supported, Tentative, Conflicted, Deprecated)
}

// A Scope limits a rule to environments and states; values that are not text
// are read as str() writes them. Its order is that of the document.
type Scope []ScopeEntry

// A ScopeEntry is one member of a [Scope].
type ScopeEntry struct{ Key, Value string }

// MarshalJSONTo writes the scope as an object.
func (s Scope) MarshalJSONTo(enc *jsontext.Encoder) error {
	ms := make([]value.Member, len(s))
	for i, e := range s {
		ms[i] = value.Member{Key: e.Key, Value: value.MustText(e.Value)}
	}
	return enc.WriteValue(jsontext.Value(value.ObjectOf(ms...).String()))
}

// UnmarshalJSONFrom reads an object.
func (s *Scope) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var v value.Value
	if err := v.UnmarshalJSONFrom(dec); err != nil {
		return err
	}
	if v.Kind() != value.Object {
		return fmt.Errorf("scope must be an object, not %s", v.Kind())
	}
	*s = nil
	for k, m := range v.Members() {
		text := python.Str(m)
		if m.Kind() == value.List || m.Kind() == value.Object {
			text = python.Dumps(m, python.LineStyle)
		}
		*s = append(*s, ScopeEntry{k, text})
	}
	return nil
}

// An Invariant is a condition that must hold after every step.
type Invariant struct {
	ID          string      `json:"id"`
	Description string      `json:"description"`
	Condition   Condition   `json:"condition"`
	Severity    string      `json:"severity"` // "error" or "warning"
	Provenance  []SourceRef `json:"provenance"`
}

// UnmarshalJSONFrom reads an invariant; its severity is error unless it says
// otherwise.
func (i *Invariant) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Invariant
	p := plain{Severity: "error"}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if p.ID == "" || p.Condition.IsGroup() && p.Condition.Any == nil && p.Condition.All == nil && p.Condition.Not == nil {
		return fmt.Errorf("an invariant needs an id and a condition")
	}
	if err := oneOf("severity", p.Severity, "error", "warning"); err != nil {
		return fmt.Errorf("invariant %q: %w", p.ID, err)
	}
	*i = Invariant(p)
	return nil
}
