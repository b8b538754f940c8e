package figures

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// dirVariable names a directory with other suites in AgentDojo's format.
const dirVariable = "CALLSHEET_AGENTDOJO"

// destructive are the effects that may destroy or overwrite; effects.json does
// not say.
var destructive = []string{"delete_email", "delete_file", "cancel_calendar_event", "update_password"}

type goldCall struct {
	Tool    string      `json:"tool"`
	Args    value.Value `json:"args"`
	Output  value.Value `json:"output"`
	Tainted []string    `json:"tainted_paths"`
}

type userTask struct {
	ID     string     `json:"id"`
	Prompt string     `json:"prompt"`
	Calls  []goldCall `json:"calls"`
}

type injectionTask struct {
	ID    string     `json:"id"`
	Goal  string     `json:"goal"`
	Calls []goldCall `json:"calls"`
}

type roleLists struct {
	Targets []string `json:"targets"`
	Content []string `json:"content"`
}

// suite is one AgentDojo suite with what is derived from it.
type suite struct {
	Name  string `json:"suite"`
	Tools []struct {
		Name        string      `json:"name"`
		Description string      `json:"description"`
		Parameters  value.Value `json:"parameters"`
	} `json:"tools"`
	Tasks      []userTask      `json:"user_tasks"`
	Injections []injectionTask `json:"injection_tasks"`

	effects map[string]roleLists
	cat     *tool.Catalogue
	tainted map[string][]string // by tool: patterns that an attacker can write
	pairs   []pair
	plans   map[string]planDoc

	grants  map[string]*policy.Grants // by task
	written map[string]written        // by task, without injected calls
}

// pair is a user task under the attack of an injection task.
type pair struct {
	Suite     string     `json:"suite"`
	User      string     `json:"user_task"`
	Injection string     `json:"injection_task"`
	Injected  []goldCall `json:"injected_calls"`
	MustBlock []int      `json:"must_block"`
}

// planDoc is a user task as a plan, references written {"$ref", "path"}.
type planDoc struct {
	Suite string `json:"suite"`
	ID    string `json:"id"`
	Steps []struct {
		ID   string      `json:"id"`
		Tool string      `json:"tool"`
		Args value.Value `json:"args"`
	} `json:"steps"`
}

func (s *suite) task(id string) *userTask {
	for i := range s.Tasks {
		if s.Tasks[i].ID == id {
			return &s.Tasks[i]
		}
	}
	return nil
}

func (s *suite) injection(id string) *injectionTask {
	for i := range s.Injections {
		if s.Injections[i].ID == id {
			return &s.Injections[i]
		}
	}
	return nil
}

func (s *suite) effectful(tool string) bool { _, ok := s.effects[tool]; return ok }

func readJSON(t testing.TB, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// loadSuites reads every suite of the directory.
func loadSuites(t testing.TB) []*suite {
	t.Helper()
	dir := os.Getenv(dirVariable)
	if dir == "" {
		dir = filepath.Join("testdata", "agentdojo")
	}
	var effects struct {
		Effects map[string]map[string]roleLists `json:"effects"`
	}
	readJSON(t, filepath.Join(dir, "effects.json"), &effects)
	var plans []planDoc
	readJSON(t, filepath.Join(dir, "plans.json"), &plans)
	var suites []*suite
	for name := range effects.Effects {
		suites = append(suites, &suite{Name: name, effects: effects.Effects[name], plans: map[string]planDoc{}, tainted: map[string][]string{},
			grants: map[string]*policy.Grants{}, written: map[string]written{}})
	}
	slices.SortFunc(suites, func(a, b *suite) int { return strings.Compare(a.Name, b.Name) })
	byName := map[string]*suite{}
	for _, s := range suites {
		byName[s.Name] = s
		readJSON(t, filepath.Join(dir, s.Name+".json"), s)
		s.catalogue(t)
		s.taint()
	}
	for _, p := range plans {
		byName[p.Suite].plans[p.ID] = p
	}
	f, err := os.Open(filepath.Join(dir, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p pair
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		byName[p.Suite].pairs = append(byName[p.Suite].pairs, p)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return suites
}

// catalogue makes the declarations: of effects.json, a tool that it does not list
// is read-only, an arg that it does not list is neutral.
func (s *suite) catalogue(t testing.TB) {
	t.Helper()
	var decls []*tool.Declaration
	for _, ft := range s.Tools {
		in, err := schema.Compile(ft.Parameters)
		if err != nil {
			t.Fatalf("%s: %v", ft.Name, err)
		}
		d := &tool.Declaration{Name: ft.Name, Description: ft.Description, Input: in, Source: "agentdojo", Effects: tool.Effects{ReadOnly: true}}
		if e, ok := s.effects[ft.Name]; ok {
			d.Effects = tool.Effects{Destructive: slices.Contains(destructive, ft.Name)}
			for _, a := range e.Targets {
				d.Args = append(d.Args, tool.Arg{Pattern: "/" + a, Role: tool.Target})
			}
			for _, a := range e.Content {
				d.Args = append(d.Args, tool.Arg{Pattern: "/" + a, Role: tool.Content})
			}
		}
		d.Args = append(d.Args, tool.Arg{Pattern: "/*", Role: tool.Neutral})
		decls = append(decls, d)
	}
	var err error
	if s.cat, err = tool.NewCatalogue(decls...); err != nil {
		t.Fatal(err)
	}
}

var index = regexp.MustCompile(`\[(\d+)\]`)

// pointer writes a path of the data ("[1].id", ".id_", "") as an RFC 6901
// pointer.
func pointer(path string) string {
	return strings.ReplaceAll(strings.ReplaceAll(index.ReplaceAllString(path, "/$1"), ".", "/"), "//", "/")
}

// taint is the generated catalogue: per tool the union of tainted paths over the
// suite, with indexes replaced by *.
func (s *suite) taint() {
	for _, task := range s.Tasks {
		for _, c := range task.Calls {
			for _, p := range c.Tainted {
				p = pointer(index.ReplaceAllString(p, "/*"))
				if !slices.Contains(s.tainted[c.Tool], p) {
					s.tainted[c.Tool] = append(s.tainted[c.Tool], p)
				}
			}
		}
	}
}

// setting is a way to label outputs.
type setting int

const (
	perLeaf     setting = iota
	perOutput           // one tainted leaf taints the whole output
	textTainted         // every text leaf is untrusted
)

// document is the shipped default with the outputs' labels of the setting.
func (s *suite) document(how setting) *policy.Document {
	doc := policy.Default()
	doc.Outputs = map[string]policy.Output{}
	for _, t := range s.Tools {
		o := policy.Output{Trusted: []string{""}, Untrusted: s.tainted[t.Name], UntrustedText: how == textTainted}
		if how == perOutput && len(o.Untrusted) > 0 {
			o = policy.Output{}
		}
		doc.Outputs[t.Name] = o
	}
	return doc
}

func (s *suite) policy(t testing.TB, how setting) *policy.Policy {
	t.Helper()
	p, err := s.document(how).Compile(s.cat)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// leaves visits every scalar of v.
func leaves(v value.Value, pointer string, visit func(pointer string, leaf value.Value)) {
	if v.Len() == 0 {
		visit(pointer, v)
		return
	}
	for k, m := range v.Members() {
		leaves(m, pointer+"/"+value.EscapePointer(k), visit)
	}
	for i, e := range v.Elements() {
		leaves(e, pointer+"/"+strconv.Itoa(i), visit)
	}
}

// replace is v with every leaf that change answers for replaced.
func replace(v value.Value, pointer string, change func(pointer string, leaf value.Value) value.Value) value.Value {
	switch {
	case v.Len() == 0:
		return change(pointer, v)
	case v.Kind() == value.List:
		out := make([]value.Value, v.Len())
		for i, e := range v.Elements() {
			out[i] = replace(e, pointer+"/"+strconv.Itoa(i), change)
		}
		return value.ListOf(out...)
	}
	out := make([]value.Member, 0, v.Len())
	for k, m := range v.Members() {
		out = append(out, value.Member{Key: k, Value: replace(m, pointer+"/"+value.EscapePointer(k), change)})
	}
	return value.ObjectOf(out...)
}

// written is a user task's plan in this project's format.
type written struct {
	plan      *plan.Plan
	literals  int // effectful calls' literals that were rewritten as references
	effectful []int
}

// write turns a plan of the data into ours. The data holds literals where a
// planner would refer to a result: a literal target that the task does not grant
// and that equals a leaf of an earlier recorded output becomes a reference to
// that leaf, a trusted one before others. The choice of an enum is left a literal:
// it is equal to some leaf by chance.
func (s *suite) write(t testing.TB, task *userTask, doc planDoc, extra ...goldCall) written {
	t.Helper()
	if w, ok := s.written[task.ID]; ok && len(extra) == 0 {
		return w
	}
	var w written
	grants := s.granted(task)
	labels := variants[perLeafVariant].policy(t, s).Session("", policy.Author{})
	known := map[string]string{} // a leaf's JSON to a reference
	var steps []value.Value
	for i, st := range doc.Steps {
		args := convertRefs(st.Args)
		d := s.cat.Get(st.Tool)
		if s.effectful(st.Tool) {
			w.effectful = append(w.effectful, i)
			args = replace(args, "", func(ptr string, leaf value.Value) value.Value {
				name, _, _ := strings.Cut(ptr[1:], "/")
				if !slices.Contains(s.effects[st.Tool].Targets, name) || grants.Allows(d, ptr, leaf) || s.isChoice(d, name) {
					return leaf
				}
				if ref, ok := known[leaf.String()]; ok {
					w.literals++
					return value.MustText(ref)
				}
				return leaf
			})
		}
		steps = append(steps, value.ObjectOf(
			value.Member{Key: "id", Value: value.MustText(st.ID)},
			value.Member{Key: "tool", Value: value.MustText(st.Tool)},
			value.Member{Key: "args", Value: args}))
		if i < len(task.Calls) {
			out := task.Calls[i].Output
			labels.End(policy.Call{Step: st.ID, Tool: d, Args: value.ObjectOf()}, "ok", out)
			for _, wantTrusted := range []bool{true, false} {
				leaves(out, "", func(ptr string, leaf value.Value) {
					if ptr == "" || leaf.Kind() == value.Null || leaf.Kind() == value.Bool {
						return
					}
					path := strings.ReplaceAll(ptr[1:], "/", ".")
					if _, ok := known[leaf.String()]; !ok && (labels.Label(st.ID, path, true).Integrity == policy.Trusted) == wantTrusted {
						known[leaf.String()] = "$" + st.ID + "." + path
					}
				})
			}
		}
	}
	for i, c := range extra {
		steps = append(steps, value.ObjectOf(
			value.Member{Key: "id", Value: value.MustText("x" + strconv.Itoa(i))},
			value.Member{Key: "tool", Value: value.MustText(c.Tool)},
			value.Member{Key: "args", Value: escape(c.Args)}))
	}
	var err error
	if w.plan, err = plan.Decode([]byte(value.ListOf(steps...).String()), plan.Limits{}); err != nil {
		t.Fatalf("%s %s: %v", s.Name, task.ID, err)
	}
	if len(extra) == 0 {
		s.written[task.ID] = w
	}
	return w
}

// granted are the grants of a task, computed once.
func (s *suite) granted(task *userTask) *policy.Grants {
	if s.grants[task.ID] == nil {
		s.grants[task.ID] = policy.NewGrants(task.Prompt)
	}
	return s.grants[task.ID]
}

// isChoice reports whether the arg's schema is an enum.
func (s *suite) isChoice(d *tool.Declaration, arg string) bool {
	in := d.Input.Value()
	props, _ := in.Get("properties")
	schema, _ := props.Get(arg)
	if ref, ok := schema.Get("$ref"); ok {
		text, _ := ref.Text()
		schema, _ = in.AtPointer(strings.TrimPrefix(text, "#"))
	}
	_, ok := schema.Get("enum")
	return ok
}

// convertRefs writes {"$ref":"s2","path":"[1].id"} as "$s2.1.id".
func convertRefs(v value.Value) value.Value {
	if ref, ok := v.Get("$ref"); ok {
		id, _ := ref.Text()
		path, _ := v.Get("path")
		text, _ := path.Text()
		return value.MustText("$" + id + strings.ReplaceAll(pointer(text), "/", "."))
	}
	switch {
	case v.Kind() == value.Object && v.Len() > 0:
		out := make([]value.Member, 0, v.Len())
		for k, m := range v.Members() {
			out = append(out, value.Member{Key: k, Value: convertRefs(m)})
		}
		return value.ObjectOf(out...)
	case v.Kind() == value.List:
		out := make([]value.Value, v.Len())
		for i, e := range v.Elements() {
			out[i] = convertRefs(e)
		}
		return value.ListOf(out...)
	}
	return escape(v)
}

// escape keeps literals that start with $ literal.
func escape(v value.Value) value.Value {
	return replace(v, "", func(_ string, leaf value.Value) value.Value {
		if text, ok := leaf.Text(); ok && strings.HasPrefix(text, "$") {
			return value.MustText("$" + text)
		}
		return leaf
	})
}
