package policy

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/interpreter"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Judge answers one call. It changes nothing: what was let through is told by
// [Session.Begin].
func (s *Session) Judge(c Call) Decision {
	if s.policy.none {
		return Decision{}
	}
	j := s.judge(&c, false)
	return j.verdict.Decision
}

// judgement is the judging of one call: of real args, or of a plan's step before
// anything ran.
type judgement struct {
	session *Session
	call    *Call
	labels  labeller
	verdict verdict
	roles   roles
	static  bool // args have holes for references

	targets   int           // targets that name something
	untrusted int           // of these, the ones that nothing makes usable
	named     []value.Value // the targets, for the group
	promised  map[string]Label
	spoke     bool // a rule or a rule of the default had something to say
	certain   bool // nothing that is not known yet could change the effect
}

func (s *Session) judge(c *Call, static bool) *judgement {
	j := &judgement{session: s, call: c, static: static, certain: true}
	j.labels = labeller{session: s, call: c, author: &s.author}
	j.verdict.Policy = s.policy.digest
	var err error
	if j.roles, err = s.policy.rolesOf(c.Tool); err != nil {
		j.verdict.add(Deny, CodeRuleFailed, "default.roles", "%v", err)
	}
	j.part("", c.Args)
	j.rules()
	j.base()
	if j.verdict.Effect == Ask && !static {
		j.verdict.Group = value.ListOf(append(j.named, value.MustText(c.Tool.Name))...).Digest()
	}
	return j
}

// part judges the value v at the pointer by its role and its label.
func (j *judgement) part(pointer string, v value.Value) {
	role, below := j.roles.at(pointer)
	l := &j.labels
	origin := l.origin(pointer)
	if origin == nil {
		if _, ok := secretName(v); ok {
			j.secret(pointer, role)
			return
		}
	}
	if v.Len() > 0 && (origin == nil || below || l.split(pointer)) {
		for i := range v.Len() {
			child := childPointer(pointer, v, i)
			if origin == nil && pointer != "" && v.Kind() == value.Object {
				j.name(pointer, child, v.Key(i))
			}
			j.part(child, v.At(i))
		}
		return
	}
	if pointer == "" && origin == nil {
		return // args without any member
	}
	if j.static && origin != nil && below {
		role = j.roles.worst(pointer)
	}
	present := origin != nil && j.static || v.Len() > 0 || v.Kind() != value.Null && v.Kind() != value.List && v.Kind() != value.Object
	if text, ok := v.Text(); ok && text == "" {
		present = origin != nil && j.static
	}
	if matters(role) && present {
		j.targets++
		if !j.static {
			j.named = append(j.named, v)
		}
	}
	if origin == nil {
		if matters(role) {
			j.decide(pointer, role, v, l.literal(pointer, v))
		}
		return
	}
	if !matters(role) && !j.session.mayBeSecret(origin) {
		return // nobody asked: a large output that is only content is never looked at
	}
	label := l.fromOrigin(origin, pointer, v)
	if j.static {
		if j.promised == nil {
			j.promised = map[string]Label{}
		}
		j.promised[pointer] = label
	} else if p := j.call.Promise; p != nil && label.Worse(p.label(pointer)) {
		j.verdict.add(Ask, CodeWorseThanCheck, "default.promise",
			"%s is %s, which is worse than the check before the run could know", pointer, label)
	}
	j.decide(pointer, role, v, label)
}

// name judges the name of a member of a literal object.
func (j *judgement) name(object, pointer, name string) {
	role, _ := j.roles.at(pointer)
	if a := &j.session.author; matters(role) && !a.ownName(j.call.Tool, object, name) {
		j.decide(pointer, role, value.MustText(name), Label{Integrity: Untrusted, Sources: a.Seen.Sources})
	}
}

// decide judges one part with its label.
func (j *judgement) decide(pointer string, role tool.Role, v value.Value, label Label) {
	if label.Integrity != User || label.Secret {
		f := Fact{Pointer: pointer, Role: role, Label: label}
		if !label.Secret && !(j.static && j.labels.origin(pointer) != nil) {
			f.Value = v
		}
		if label.Integrity == Untrusted && matters(role) {
			f.Accepted = j.session.policy.accepts(j.call.Tool.Name, pointer, v)
		}
		j.verdict.Facts = append(j.verdict.Facts, f)
		if f.Accepted != "" {
			label.Integrity = Trusted
			j.verdict.Rules = append(j.verdict.Rules, "lists."+f.Accepted)
		}
	}
	if label.Secret && role != tool.Secret {
		j.verdict.add(Deny, CodeSecretMisplaced, "default.secret",
			"%s would carry a secret, and is not an arg of kind secret", pointer)
	}
	if label.Integrity != Untrusted || !matters(role) {
		return
	}
	j.untrusted++
	if place(role) {
		if j.static && j.session.policy.mayAccept(j.call.Tool.Name, pointer) {
			j.certain = false
		}
		j.verdict.add(Deny, CodeUntrustedPlace, "default.place",
			"%s names a %s and is %s; only a closed list can allow it", pointer, role, label)
	}
}

// secret judges a placeholder.
func (j *judgement) secret(pointer string, role tool.Role) {
	if role != tool.Secret {
		j.verdict.add(Deny, CodeSecretMisplaced, "default.secret",
			"%s is not an arg of kind secret, so no secret can stand there", pointer)
	}
}

// mayBeSecret reports whether anything that a step's tool returns is declared
// secret.
func (s *Session) mayBeSecret(o *Origin) bool {
	src := s.sources[o.Step]
	return src != nil && src.labels != nil && len(src.labels.secret) > 0
}

// base adds what the policy says when no rule decides.
func (j *judgement) base() {
	e := j.call.Tool.Effects
	switch base := j.session.policy.base; {
	case base != baseDefault:
		if !j.spoke {
			j.verdict.add(base.effect(), base.code(), "base", "no rule of the policy allows this call")
		}
	case e.ReadOnly:
		j.verdict.add(Allow, "", "default.read_only", "")
	case j.untrusted > 0:
		j.verdict.add(Ask, CodeNeedsApproval, "default.untrusted", "%s", j.untrustedMessage())
		if e.Destructive {
			j.verdict.Rules = append(j.verdict.Rules, "default.destructive")
		}
	case e.Destructive:
		j.verdict.add(Ask, CodeNeedsApproval, "default.destructive", "%s may destroy or overwrite", j.call.Tool.Name)
	case j.targets == 0 && j.session.author.Seen.Integrity == Untrusted:
		j.verdict.add(Ask, CodeNeedsApproval, "default.choice",
			"%s names no target, and the model that chose it had read something %s", j.call.Tool.Name, j.session.author.Seen)
	default:
		j.verdict.add(Allow, "", "default.effect", "")
	}
}

func (j *judgement) untrustedMessage() string {
	for _, f := range j.verdict.Facts {
		if f.Label.Integrity == Untrusted && f.Accepted == "" && matters(f.Role) {
			return f.Pointer + " of " + j.call.Tool.Name + " is a " + string(f.Role) + " and is " + f.Label.String()
		}
	}
	return "a target of " + j.call.Tool.Name + " is untrusted"
}

// rules evaluates the rules of the call's tool.
func (j *judgement) rules() {
	rules := j.session.policy.byTool[j.call.Tool.Name]
	if len(rules) == 0 {
		return
	}
	act := j.activation()
	// One frame serves the rules whose cost is fixed by what they say: making it
	// costs as much as a small condition. The others count, and are cut off, in a
	// frame of their own.
	frame, err := interpreter.NewExecutionFrame(act)
	if err != nil {
		j.verdict.add(Deny, CodeRuleFailed, "default.rules", "%v", err)
		return
	}
	defer frame.Close()
	for _, r := range rules {
		if j.static && r.needsRun(j.call) {
			j.may(r.Rule)
			continue
		}
		fires := true
		if r.program != nil {
			act.faults = evalFaults{}
			var in any = frame
			if r.looping {
				in = act
			}
			out, _, err := r.program.Eval(in)
			fires = err == nil && out == types.True
			if err != nil {
				act.faults.add(err)
			}
			if act.faults.other != nil {
				j.spoke = true
				j.verdict.add(Deny, CodeRuleFailed, r.ID, "rule %s cannot be evaluated: %s", r.ID, clip(act.faults.other.Error()))
				continue
			}
			if act.faults.missing != nil && !(fires && r.Effect == Deny) {
				j.spoke = true
				j.verdict.add(Ask, CodeMissingFact, r.ID, "rule %s cannot be judged: %v", r.ID, act.faults.missing)
				continue
			}
		}
		if fires {
			j.spoke = true
			j.verdict.add(r.Effect, r.Effect.code(), r.ID, "%s", r.message())
		}
	}
}

// may notes a rule that only the run can evaluate.
func (j *judgement) may(r *Rule) {
	if r.Effect > j.verdict.Effect {
		j.certain = false
	}
}

func (e Effect) code() string {
	switch e {
	case Allow:
		return ""
	case Ask:
		return CodeNeedsApproval
	}
	return CodeDenied
}

func (r *Rule) message() string {
	if r.Message != "" {
		return r.Message
	}
	return "rule " + r.ID + " says " + r.Effect.String()
}

// ResolveName gives a variable of a rule.
func (a *activation) ResolveName(name string) (any, bool) {
	switch name {
	case "args":
		return &a.args, true
	case "labels":
		return &a.labels, true
	case "tool":
		return &a.tool, true
	case "step":
		return &a.step, true
	case "run":
		return &a.run, true
	case "lists":
		return &a.lists, true
	case "history":
		return a.session.historyList(), true
	case varHistory:
		return &a.history, true
	case varFaults:
		return &a.faults, true
	}
	return nil, false
}

// Parent is nil: a rule sees nothing else.
func (a *activation) Parent() interpreter.Activation { return nil }
