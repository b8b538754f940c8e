package figures

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// retailCall is a gold call of τ-bench. Its output is text, often JSON.
type retailCall struct {
	Tool    string      `json:"tool"`
	Args    value.Value `json:"args"`
	Output  string      `json:"output"`
	Changes bool        `json:"changes_state"`
}

func (c retailCall) failed() bool { return strings.HasPrefix(c.Output, "Error") }

func (c retailCall) arg(name string) string {
	v, _ := c.Args.Get(name)
	s, _ := v.Text()
	return s
}

type retailTask struct {
	ID    string       `json:"id"`
	User  string       `json:"user_id"`
	Calls []retailCall `json:"calls"`
}

type retail struct {
	Tools []struct {
		Name       string      `json:"name"`
		Parameters value.Value `json:"parameters"`
	} `json:"tools"`
	Tasks []retailTask `json:"tasks"`

	cat    *tool.Catalogue
	policy *policy.Policy
	orders map[string]*retailCall // get_order_details, by order
	owner  map[string]string      // of each order
	users  map[string]*retailCall // get_user_details, by user
	pays   map[string][]string    // payment methods, by user

	changing map[string]bool // tools that ever change state
}

func loadRetail(t *testing.T) *retail {
	t.Helper()
	r := &retail{orders: map[string]*retailCall{}, owner: map[string]string{}, users: map[string]*retailCall{}, pays: map[string][]string{}, changing: map[string]bool{}}
	readJSON(t, filepath.Join("testdata", "tau-bench", "retail.json"), r)
	var decls []*tool.Declaration
	for _, rt := range r.Tools {
		in, err := schema.Compile(rt.Parameters)
		if err != nil {
			t.Fatal(err)
		}
		decls = append(decls, &tool.Declaration{Name: rt.Name, Input: in, Source: "tau-bench"})
	}
	var err error
	if r.cat, err = tool.NewCatalogue(decls...); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "retail-policy.json"))
	if err != nil {
		t.Fatal(err)
	}
	section, err := value.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Read(section, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.policy, err = doc.Compile(r.cat); err != nil {
		t.Fatal(err)
	}
	for i := range r.Tasks {
		for j := range r.Tasks[i].Calls {
			c := &r.Tasks[i].Calls[j]
			if c.failed() {
				continue
			}
			r.changing[c.Tool] = r.changing[c.Tool] || c.Changes
			out, _ := value.Parse(c.Output)
			switch c.Tool {
			case "get_order_details":
				r.orders[c.arg("order_id")] = c
				u, _ := out.Get("user_id")
				r.owner[c.arg("order_id")], _ = u.Text()
			case "get_user_details":
				r.users[c.arg("user_id")] = c
				methods, _ := out.Get("payment_methods")
				for k := range methods.Members() {
					if !slices.Contains(r.pays[c.arg("user_id")], k) {
						r.pays[c.arg("user_id")] = append(r.pays[c.arg("user_id")], k)
					}
				}
			}
		}
	}
	return r
}

// play judges call after the calls of past were made.
func (r *retail) play(past []retailCall, call retailCall) policy.Decision {
	s := r.policy.Session("retail", policy.Author{})
	for i := range past {
		c := &past[i]
		pc := policy.Call{Step: itoa(i), Tool: r.cat.Get(c.Tool), Args: c.Args}
		s.Begin(pc)
		if c.failed() {
			s.End(pc, "tool_error", value.Value{})
		} else {
			s.End(pc, "ok", value.MustText(c.Output))
		}
	}
	return s.Judge(policy.Call{Step: "x", Tool: r.cat.Get(call.Tool), Args: call.Args})
}

func isLookup(name string) bool {
	return name == "find_user_id_by_email" || name == "find_user_id_by_name_zip"
}

// judgeable reports whether history alone can judge the task's changes: it
// authenticates, and reads every order before it changes it.
func (r *retail) judgeable(task *retailTask) bool {
	known, read := false, map[string]bool{}
	for i := range task.Calls {
		c := &task.Calls[i]
		switch {
		case c.failed():
		case isLookup(c.Tool):
			known = true
		case c.Tool == "get_order_details":
			read[c.arg("order_id")] = true
		case c.Changes:
			if !known || c.arg("order_id") != "" && !read[c.arg("order_id")] {
				return false
			}
		}
	}
	return true
}

// site is a gold call that changes state, in a judgeable task.
type site struct {
	task *retailTask
	at   int
}

func (s site) past() []retailCall { return slices.Clone(s.task.Calls[:s.at]) }
func (s site) call() retailCall   { return s.task.Calls[s.at] }

// setArg is the call with one arg replaced.
func setArg(c retailCall, name, text string) retailCall {
	c.Args = replace(c.Args, "", func(ptr string, leaf value.Value) value.Value {
		if ptr == "/"+name {
			return value.MustText(text)
		}
		return leaf
	})
	return c
}

// A mutator makes a forbidden call out of a gold one; ok is false where it does
// not apply. The six are those that the figure was set for; they came into the
// repository together with the rules, so that nothing shows which was first.
type mutator struct {
	name   string
	change func(r *retail, rng *rand.Rand, s site) (past []retailCall, call retailCall, ok bool)
}

func pickOf(rng *rand.Rand, list []string) string { return list[rng.IntN(len(list))] }

var mutators = []mutator{
	{"authentication dropped", func(r *retail, rng *rand.Rand, s site) ([]retailCall, retailCall, bool) {
		return slices.DeleteFunc(s.past(), func(c retailCall) bool { return isLookup(c.Tool) }), s.call(), true
	}},
	{"another user's order", func(r *retail, rng *rand.Rand, s site) ([]retailCall, retailCall, bool) {
		if s.call().arg("order_id") == "" {
			return nil, retailCall{}, false
		}
		var foreign []string
		for id, owner := range r.owner {
			if owner != r.owner[s.call().arg("order_id")] {
				foreign = append(foreign, id)
			}
		}
		slices.Sort(foreign)
		id := pickOf(rng, foreign)
		return append(s.past(), *r.orders[id]), setArg(s.call(), "order_id", id), true
	}},
	{"wrong order status", func(r *retail, rng *rand.Rand, s site) ([]retailCall, retailCall, bool) {
		id := s.call().arg("order_id")
		if id == "" {
			return nil, retailCall{}, false
		}
		right := "pending"
		if strings.Contains(s.call().Tool, "delivered") {
			right = "delivered"
		}
		wrong := slices.DeleteFunc([]string{"pending", "processed", "delivered", "cancelled", "return requested", "exchange requested", "pending (items modified)"},
			func(st string) bool { return st == right })
		status := pickOf(rng, wrong)
		past := s.past()
		for i := range past {
			if past[i].Tool == "get_order_details" && past[i].arg("order_id") == id && !past[i].failed() {
				past[i].Output = strings.Replace(past[i].Output, `"status": "`+right+`"`, `"status": "`+status+`"`, 1)
			}
		}
		return past, s.call(), true
	}},
	{"a second exchange or modification", func(r *retail, rng *rand.Rand, s site) ([]retailCall, retailCall, bool) {
		switch s.call().Tool {
		case "exchange_delivered_order_items", "modify_pending_order_items":
			// Other calls of the task may stand between the two.
			rest := slices.DeleteFunc(slices.Clone(s.task.Calls[s.at+1:]), func(c retailCall) bool { return c.Changes })
			past := append(s.past(), s.call())
			return append(past, rest[:rng.IntN(len(rest)+1)]...), s.call(), true
		}
		return nil, retailCall{}, false
	}},
	{"a foreign payment method", func(r *retail, rng *rand.Rand, s site) ([]retailCall, retailCall, bool) {
		if s.call().arg("payment_method_id") == "" {
			return nil, retailCall{}, false
		}
		owner := r.owner[s.call().arg("order_id")]
		if r.users[owner] == nil {
			return nil, retailCall{}, false
		}
		var foreign []string
		for user, methods := range r.pays {
			if user != owner {
				for _, m := range methods {
					if !slices.Contains(r.pays[owner], m) {
						foreign = append(foreign, m)
					}
				}
			}
		}
		slices.Sort(foreign)
		// The agent has read the profile: otherwise the fact is missing, which asks.
		return append(s.past(), *r.users[owner]), setArg(s.call(), "payment_method_id", pickOf(rng, foreign)), true
	}},
	{"an invalid cancel reason", func(r *retail, rng *rand.Rand, s site) ([]retailCall, retailCall, bool) {
		if s.call().Tool != "cancel_pending_order" {
			return nil, retailCall{}, false
		}
		reason := pickOf(rng, []string{"changed my mind", "too expensive", "No longer needed", "no longer needed ", "ordered by mistake.", "found it cheaper", "", "other", "mistake", "no  longer needed"})
		return s.past(), setArg(s.call(), "reason", reason), true
	}},
}

const (
	perClass   = 250 // mutations of each class; the issue asks for 200
	retailSeed = 7
)

// TestFiguresTauBench holds the business policy of τ-bench retail, as rules,
// against its gold tasks and against mutations of them.
func TestFiguresTauBench(t *testing.T) {
	r := loadRetail(t)
	rep := &report{title: "τ-bench retail"}
	var tasks, judgeable, gold, falseDenials, goldAsks, other, otherAsks, otherDenials, errors int
	var sites []site
	reasons := map[string]int{}
	for i := range r.Tasks {
		task := &r.Tasks[i]
		if !slices.ContainsFunc(task.Calls, func(c retailCall) bool { return c.Changes }) {
			continue
		}
		tasks++
		ok := r.judgeable(task)
		if ok {
			judgeable++
		}
		for at := range task.Calls {
			c := &task.Calls[at]
			if c.failed() {
				errors++
				continue
			}
			d := r.play(task.Calls[:at], *c)
			if !c.Changes {
				if d.Effect != policy.Allow && !r.changing[c.Tool] {
					t.Errorf("%s: a call that only reads got %s: %s", task.ID, d.Effect, d.Message)
				}
				continue
			}
			if !ok {
				other++
				switch d.Effect {
				case policy.Ask:
					otherAsks++
				case policy.Deny:
					otherDenials++
					reasons[d.Rules[0]]++
				}
				continue
			}
			gold++
			sites = append(sites, site{task, at})
			switch d.Effect {
			case policy.Ask:
				goldAsks++
				rep.notes = append(rep.notes, fmt.Sprintf("%s, %s asks: %s", task.ID, c.Tool, d.Message))
			case policy.Deny:
				falseDenials++
				t.Errorf("%s: %s %s: %s", task.ID, c.Tool, c.Args, d.Message)
			}
		}
	}
	if tasks != 104 || judgeable != 58 {
		t.Errorf("got %d tasks that change state and %d judgeable, want 104 and 58", tasks, judgeable)
	}
	rep.add("τ1", "false denials of gold calls", falseDenials, gold, "in the %d of %d state-changing tasks that history alone can judge; %d gold calls whose output is an error are left out", judgeable, tasks, errors)
	rep.add("τ1", "gold calls there that ask", goldAsks, gold, "a missing fact")
	rep.add("τ2", "gold calls of the other tasks that ask", otherAsks, other, "a missing fact")
	rep.add("τ2", "gold calls of the other tasks that are denied", otherDenials, other, "%d of them change a profile", reasons["own-profile"])
	for n, m := range mutators {
		rng := rand.New(rand.NewPCG(retailSeed, uint64(n)))
		denied, total, asked := 0, 0, 0
		for tries := 0; total < perClass && tries < 100*perClass; tries++ {
			past, call, ok := m.change(r, rng, sites[rng.IntN(len(sites))])
			if !ok {
				continue
			}
			total++
			switch d := r.play(past, call); d.Effect {
			case policy.Deny:
				denied++
			case policy.Ask:
				asked++
			}
		}
		rep.add("τ3", m.name, denied, total, "denied; %d more ask", asked)
		if total < 200 || denied*100 < total*99 {
			t.Errorf("%s: %d of %d denied, want at least 99 %% of at least 200", m.name, denied, total)
		}
	}
	rep.publish(t, "tau-bench")
}
