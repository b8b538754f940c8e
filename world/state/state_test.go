package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"pgregory.net/rapid"
)

func doc(t testing.TB, text string) State {
	t.Helper()
	s, err := Parse(value.MustParse(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mutations(t testing.TB, text string) []world.Mutation {
	t.Helper()
	var ms []world.Mutation
	if err := world.Decode([]byte(text), &ms); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return ms
}

func TestPathVectors(t *testing.T) {
	const content = `{"op":"create","path":"world.files./app/report.txt","value":{"type":"file","content":"x\n"}}`
	for _, c := range []struct{ ops, want string }{
		{content, `{"files":{"/app/report.txt":{"type":"file","content":"x\n"}}}`},
		{content + `,{"op":"set","path":"world.files./app/report.txt.content","value":"y\n"}`, `{"files":{"/app/report.txt":{"type":"file","content":"y\n"}}}`},
		{`{"op":"set","path":"world.files./app/data.tar.gz.size","value":3}`, `{"files":{"/app/data.tar.gz":{"size":3}}}`},
		{content + `,{"op":"create","path":"world.files./app/report.txt.bak","value":{"a":1}}`,
			`{"files":{"/app/report.txt":{"type":"file","content":"x\n"},"/app/report.txt.bak":{"a":1}}}`},
		{`{"op":"set","path":"world.pages.https://shop.example.com/cart.items","value":2}`, `{"pages":{"https://shop.example.com/cart":{"items":2}}}`},
		{`{"op":"set","path":"world.git.branches.main","value":"abc"}`, `{"git":{"branches":{"main":"abc"}}}`},
		{`{"op":"set","path":"world[\"a\"]['b'][c]","value":1}`, `{"a":{"b":{"c":1}}}`},
		{`{"op":"set","path":"world.a","value":null},{"op":"set","path":"world.a.b","value":1}`, `{"a":{"b":1}}`},
		{content + `,{"op":"delete","path":"world.files./app/report.txt"}`, `{"files":{}}`},
		{`{"op":"append","path":"world.l","value":{"a":[]}},{"op":"append","path":"world.l.0.a","value":7}`, `{"l":[{"a":[7]}]}`},
		{`{"op":"set","path":"world.o","value":{"a":1}},{"op":"merge","path":"world.o","value":{"b":2,"a":3}},{"op":"remove","path":"world.o","value":["b","z"]}`, `{"o":{"a":3}}`},
		{`{"op":"set","path":"world.n","value":100.0},{"op":"increment","path":"world.n","value":5},{"op":"decrement","path":"world.n","value":0.5}`, `{"n":104.5}`},
		{`{"op":"set","path":"world.s","value":"a"},{"op":"increment","path":"world.s","value":"b"}`, `{"s":"ab"}`},
		{`{"op":"delete","path":"world.x.y"},{"op":"remove","path":"world.x","value":"k"}`, `{}`},
	} {
		s, err := Empty().Apply(mutations(t, "["+c.ops+"]"))
		if err != nil {
			t.Errorf("%s: %v", c.ops, err)
		} else if got := s.Namespace("world").String(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.ops, got, c.want)
		}
	}
}

func TestRefusedMutationsLeaveTheStateAlone(t *testing.T) {
	s := doc(t, `{"world":{"n":1,"s":"x","l":[1],"o":{}}}`)
	before := s.Value().String()
	for ops, want := range map[string]string{
		`{"op":"set","path":"world.n.x","value":1}`:         "Cannot traverse non-object at n in world.n.x",
		`{"op":"increment","path":"world.z","value":1}`:     "Cannot increment missing path world.z",
		`{"op":"decrement","path":"world.s","value":1}`:     "Cannot decrement non-numeric path world.s",
		`{"op":"append","path":"world.n","value":1}`:        "Cannot append to non-list path world.n",
		`{"op":"merge","path":"world.o","value":1}`:         "merge requires an object value at world.o",
		`{"op":"merge","path":"world.n","value":{}}`:        "Cannot merge into non-object path world.n",
		`{"op":"remove","path":"world.l","value":"a"}`:      "Cannot remove keys from non-object path world.l",
		`{"op":"schedule","path":"world.n","value":1}`:      "schedule mutation requires delay_steps",
		`{"op":"set","path":"world","value":1}`:             "world must be an object",
		`{"op":"increment","path":"world.n","value":1e400}`: "not a finite number",
		`{"op":"set","path":"world.l.0.x","value":1}`:       "Cannot traverse non-object at l",
	} {
		ms := append(mutations(t, `[{"op":"set","path":"world.first","value":1}]`), mutations(t, "["+ops+"]")...)
		if _, err := s.Apply(ms); err == nil || !strings.Contains(err.Error(), want) || !world.IsFault(err, world.ValueError) {
			t.Errorf("%s: got %v, want %s", ops, err, want)
		}
		if got := s.Value().String(); got != before {
			t.Fatalf("%s changed the state: %s", ops, got)
		}
	}
}

func TestScheduledEventsFireInOrderAndAtTheirStep(t *testing.T) {
	s, err := doc(t, `{"world":{"log":[]}}`).Apply(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, _, _ = s.Advance()
	s, err = s.Apply(mutations(t, `[
		{"op":"schedule","path":"world.log","delay_steps":2,"value":{"effects":[{"op":"append","path":"world.log","value":"late"}]}},
		{"op":"schedule","path":"world.log","delay_steps":1,"value":{"effects":[{"op":"append","path":"world.log","value":"one"}]}},
		{"op":"schedule","path":"world.log","delay_steps":1,"value":{"effects":[{"op":"append","path":"world.log","value":"two"},{"op":"schedule","path":"world.x","value":9,"delay_steps":0}]}}]`))
	if err != nil {
		t.Fatal(err)
	}
	again := doc(t, s.Value().String())
	for i, want := range []string{`{"log":["one","two"]}`, `{"log":["one","two","late"],"x":9}`, `{"log":["one","two","late"],"x":9}`} {
		var due []string
		if s, due, err = s.Advance(); err != nil {
			t.Fatal(err)
		}
		if got := s.Namespace("world").String(); got != want {
			t.Errorf("step %d: %s, want %s (due %v)", s.Step, got, want, due)
		}
		if again, _, err = again.Advance(); err != nil || again.Value().String() != s.Value().String() {
			t.Errorf("step %d: a state that was written and read goes another way: %v\n%s\n%s", i, err, again.Value(), s.Value())
		}
	}
	if len(s.Pending()) != 0 {
		t.Errorf("still pending: %v", s.Pending())
	}
}

func TestConditions(t *testing.T) {
	s := doc(t, `{"world":{"n":100.0,"t":true,"l":[1,"a"],"o":{"k":null},"s":"hello"},"session":{"user":"ann"}}`)
	a := world.Action{Type: "x", Arguments: value.MustParse(`{"amount":100,"key":"k","sub":"ell","none":null}`)}
	for text, want := range map[string]bool{
		`{"left":{"path":"world.n"},"op":"eq","right":{"action_arg":"amount"}}`:                         true,
		`{"left":{"path":"world.n"},"op":"gt","right":{"literal":99}}`:                                  true,
		`{"left":{"path":"world.t"},"op":"eq","right":{"literal":1}}`:                                   true,
		`{"left":{"path":"world.n"},"op":"lt","right":{"literal":"x"}}`:                                 false,
		`{"left":{"path":"world.z"},"op":"ne","right":{"literal":1}}`:                                   false,
		`{"left":{"path":"world.o.k"},"op":"exists"}`:                                                   true,
		`{"left":{"path":"world.o.{action.arguments.key}"},"op":"exists"}`:                              true,
		`{"left":{"path":"world.o.{action.arguments.zzz}"},"op":"not_exists"}`:                          false,
		`{"left":{"action_arg":"zzz"},"op":"not_exists"}`:                                               true,
		`{"left":{"path":"world.l"},"op":"contains","right":{"literal":1.0}}`:                           true,
		`{"left":{"path":"world.o"},"op":"contains","right":{"action_arg":"key"}}`:                      true,
		`{"left":{"path":"world.s"},"op":"contains","right":{"action_arg":"sub"}}`:                      true,
		`{"left":{"literal":"z"},"op":"in","right":{"path":"world.l"}}`:                                 false,
		`{"left":{"path":"world.o.k"},"op":"eq","right":{"literal":null}}`:                              true,
		`{"left":{"path":"world.o.k"},"op":"eq","right":null}`:                                          false,
		`{"not":{"left":{"path":"world.z"},"op":"exists"}}`:                                             true,
		`{"any":[{"left":{"path":"world.z"},"op":"exists"},{"left":{"path":"world.t"},"op":"exists"}]}`: true,
		`{"all":[{"left":{"path":"world.z"},"op":"exists"},{"left":{"path":"world.t"},"op":"exists"}]}`: false,
	} {
		var c world.Condition
		if err := world.Decode([]byte(text), &c); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := s.Holds(&c, a); got != want {
			t.Errorf("%s = %v", text, got)
		}
	}
}

func TestResolveReferences(t *testing.T) {
	s := doc(t, `{"world":{"price":2.5}}`)
	a := world.Action{Type: "x", Arguments: value.MustParse(`{"n":25,"f":1.0,"o":{"p":"/a/b.txt"},"b":true}`)}
	for in, want := range map[string]string{
		`{"$action_arg":"n"}`:                    `25`,
		`"{action.arguments.f}"`:                 `1.0`,
		`"<{action.arguments.f}>"`:               `"<1.0>"`,
		`["{action.arguments.b}!"]`:              `["True!"]`,
		`{"{action.arguments.o.p}":{"x":"{y}"}}`: `{"/a/b.txt":{"x":"{y}"}}`,
		`{"$state_path":"world.price"}`:          `2.5`,
	} {
		ms, err := s.Resolve([]world.Mutation{{Op: world.Set, Path: "world.f.{action.arguments.o.p}", Value: value.MustParse(in)}}, a)
		if err != nil || ms[0].Value.String() != want || ms[0].Path != "world.f./a/b.txt" {
			t.Errorf("%s: got %v, %v; want %s", in, ms, err, want)
		}
	}
	for _, in := range []string{`{"$action_arg":"zzz"}`, `"x{action.arguments.zzz}"`, `{"$state_path":"world.z"}`} {
		if _, err := s.Resolve([]world.Mutation{{Op: world.Set, Path: "world.x", Value: value.MustParse(in)}}, a); !world.IsFault(err, world.KeyError) {
			t.Errorf("%s: got %v, want a KeyError", in, err)
		}
	}
}

// plain is the model: ordered maps and slices that are changed in place.
type plain struct {
	keys []string
	vals map[string]any
}

func toPlain(v value.Value) any {
	switch v.Kind() {
	case value.Object:
		p := &plain{vals: map[string]any{}}
		for k, m := range v.Members() {
			p.put(k, toPlain(m))
		}
		return p
	case value.List:
		l := &[]any{}
		for _, e := range v.Elements() {
			*l = append(*l, toPlain(e))
		}
		return l
	}
	return v
}

func (p *plain) put(k string, x any) {
	if _, ok := p.vals[k]; !ok {
		p.keys = append(p.keys, k)
	}
	p.vals[k] = x
}

func (p *plain) drop(k string) {
	if _, ok := p.vals[k]; ok {
		delete(p.vals, k)
		for i, have := range p.keys {
			if have == k {
				p.keys = append(p.keys[:i:i], p.keys[i+1:]...)
				return
			}
		}
	}
}

func text(x any) string {
	switch x := x.(type) {
	case *plain:
		var ms []string
		for _, k := range x.keys {
			ms = append(ms, fmt.Sprintf("%q:%s", k, text(x.vals[k])))
		}
		return "{" + strings.Join(ms, ",") + "}"
	case *[]any:
		var es []string
		for _, e := range *x {
			es = append(es, text(e))
		}
		return "[" + strings.Join(es, ",") + "]"
	}
	return x.(value.Value).String()
}

// model applies one operation on keys without dots; ok is false when it must be
// refused.
func model(root *plain, op world.Op, keys []string, v value.Value) bool {
	at := root
	for _, k := range keys[:len(keys)-1] {
		next, ok := at.vals[k]
		if s, isScalar := next.(value.Value); isScalar && s.IsNull() {
			ok = false
		}
		if !ok {
			switch op {
			case world.Delete, world.Remove:
				return true
			case world.Increment:
				return false
			}
			fresh := &plain{vals: map[string]any{}}
			at.put(k, fresh)
			next = fresh
		}
		if at, ok = next.(*plain); !ok {
			return op == world.Delete || op == world.Remove
		}
	}
	k := keys[len(keys)-1]
	cur, exists := at.vals[k]
	switch op {
	case world.Set:
		at.put(k, toPlain(v))
	case world.Delete:
		at.drop(k)
	case world.Append:
		if !exists {
			at.put(k, &[]any{toPlain(v)})
			return true
		}
		l, ok := cur.(*[]any)
		if ok {
			*l = append(*l, toPlain(v))
		}
		return ok
	case world.Merge:
		if v.Kind() != value.Object {
			return false
		}
		if !exists {
			at.put(k, toPlain(v))
			return true
		}
		o, ok := cur.(*plain)
		if ok {
			for key, m := range v.Members() {
				o.put(key, toPlain(m))
			}
		}
		return ok
	case world.Remove:
		if !exists {
			return true
		}
		o, ok := cur.(*plain)
		if ok {
			s, _ := v.Text()
			o.drop(s)
		}
		return ok
	case world.Increment:
		if l, ok := cur.(*[]any); ok && v.Kind() == value.List {
			joined := append(append([]any{}, *l...), *toPlain(v).(*[]any)...)
			at.put(k, &joined)
			return true
		}
		s, ok := cur.(value.Value)
		if t, isText := s.Text(); isText && v.Kind() == value.String {
			u, _ := v.Text()
			at.put(k, value.MustText(t+u))
			return true
		}
		n, isInt := s.Int()
		m, alsoInt := v.Int()
		if !exists || !ok || !isInt || !alsoInt {
			return false
		}
		at.put(k, value.Int(n+m))
	}
	return true
}

func TestOperationsAgreeWithAPlainModel(t *testing.T) {
	key := rapid.StringMatching(`[a-f]`)
	val := rapid.SampledFrom([]string{`1`, `null`, `"a"`, `{}`, `{"a":1,"b":{"c":[]}}`, `[]`, `[1,{"a":2}]`, `{"f":{"e":{}},"a":null}`})
	rapid.Check(t, func(t *rapid.T) {
		s, root := Empty(), &plain{vals: map[string]any{}}
		var olds []State
		var texts []string
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			op := rapid.SampledFrom([]world.Op{world.Set, world.Delete, world.Append, world.Merge, world.Remove, world.Increment}).Draw(t, "op")
			keys := rapid.SliceOfN(key, 1, 4).Draw(t, "path")
			v := value.MustParse(val.Draw(t, "value"))
			if op == world.Remove {
				v = value.MustText(key.Draw(t, "key"))
			}
			next, err := s.Apply([]world.Mutation{{Op: op, Path: "world." + strings.Join(keys, "."), Value: v}})
			before := text(root)
			if ok := model(root, op, keys, v); ok != (err == nil) {
				t.Fatalf("%s %v %s on %s: %v, the model says %v", op, keys, v, before, err, ok)
			} else if !ok {
				root = toPlain(value.MustParse(before)).(*plain)
				continue
			}
			olds, texts = append(olds, s), append(texts, before)
			s = next
			if got := s.Namespace("world").String(); got != text(root) {
				t.Fatalf("%s %v %s on %s:\n got %s\nwant %s", op, keys, v, before, got, text(root))
			}
		}
		for i, old := range olds {
			if got := old.Namespace("world").String(); got != texts[i] {
				t.Fatalf("an older state changed:\n got %s\nwant %s", got, texts[i])
			}
		}
	})
}

func TestObjectsStayBalancedAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, want := &object{}, &plain{vals: map[string]any{}}
		for range rapid.IntRange(0, 300).Draw(t, "n") {
			k := fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "k"))
			if rapid.Bool().Draw(t, "remove") {
				o = o.remove(k)
				want.drop(k)
			} else {
				v := value.Int(int64(want.next()))
				o = o.set(k, node{v: v})
				want.put(k, v)
			}
		}
		if got := (node{o: o}).value().String(); got != text(want) || o.n != len(want.keys) {
			t.Fatalf("got %s, want %s", got, text(want))
		}
		var check func(e *entry) int
		check = func(e *entry) int {
			if e == nil {
				return 0
			}
			l, r := check(e.left), check(e.right)
			if l > r+1 || r > l+1 || e.height != 1+max(l, r) {
				t.Fatalf("out of balance at %s", e.key)
			}
			return e.height
		}
		check(o.root)
	})
}

func (p *plain) next() int { return len(p.keys) }

func BenchmarkSetIn1MBState(b *testing.B) {
	var items []value.Member
	for i := range 10_000 {
		items = append(items, value.Member{Key: fmt.Sprintf("item%d", i), Value: value.MustText(strings.Repeat("x", 90))})
	}
	s, err := Parse(value.ObjectOf(value.Member{Key: "world", Value: value.ObjectOf(value.Member{Key: "items", Value: value.ObjectOf(items...)})}))
	if err != nil {
		b.Fatal(err)
	}
	m := []world.Mutation{{Op: world.Set, Path: "world.items.item77", Value: value.Int(1)}}
	for b.Loop() {
		if s, err = s.Apply(m); err != nil {
			b.Fatal(err)
		}
	}
}
