package tool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"pgregory.net/rapid"
)

func named(source string, names ...string) []*tool.Declaration {
	var out []*tool.Declaration
	for _, n := range names {
		out = append(out, &tool.Declaration{Name: n, Source: source})
	}
	return out
}

func TestHostile020_Shadowing(t *testing.T) {
	mail, chat := tool.Tool{Declaration: tool.Declaration{Name: "send_email", Source: "mcp:mail"}}, tool.Tool{Declaration: tool.Declaration{Name: "send_email", Source: "mcp:chat"}}
	_, err := tool.NewSet(mail, chat)
	if err == nil || !strings.Contains(err.Error(), "mcp:mail") || !strings.Contains(err.Error(), "mcp:chat") || !strings.Contains(err.Error(), "prefix") {
		t.Errorf("got %v, want an error that names both sources and the way out", err)
	}
	set, err := tool.NewSet(append(tool.Prefix("chat.", []tool.Tool{chat}), mail)...)
	if err != nil {
		t.Fatal(err)
	}
	c := set.Catalogue()
	if c.Get("chat.send_email") == nil || c.Get("send_email").Source != "mcp:mail" || c.Get("Send_Email") != nil || c.Get("send_email ") != nil {
		t.Error("names must match exactly one tool")
	}
	if chat.Name != "send_email" {
		t.Error("Prefix changed its input")
	}
}

func TestHostile020_LookAlikes(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"send_email", "send_emaiI", true},
		{"send_email", "send_emai1", true},
		{"send_email", "Send_Email", true},
		{"item", "Item", true},
		{"pay_100", "pay_1OO", true},
		{"pay", "рау", true},                // Cyrillic
		{"pay", "\uff50\uff41\uff59", true}, // full width
		{"send_email", "send_emails", false},
		{"read", "write", false},
	} {
		c, err := tool.NewCatalogue(named("x", "other", tt.a, tt.b)...)
		if err != nil {
			t.Fatal(err)
		}
		got := c.LookAlikes()
		if (len(got) == 1) != tt.want || len(got) == 1 && (got[0].A.Name != tt.a || got[0].B.Name != tt.b) {
			t.Errorf("%q, %q: got %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"send_email", "send_message", "read_file", "read_files", "Search", "s1", "s2"}
	for _, tt := range []struct {
		name string
		want string
	}{
		{"send_emial", "send_email"},
		{"sendemail", "send_email"},
		{"search", "Search"},
		{"read_fil", "read_file read_files"},
		{"email", "send_email"},
		{"s3", "s1 s2"},
		{"delete_everything", ""},
		{"send_email", ""}, // itself is no misspelling; none other is near
	} {
		if got := strings.Join(tool.Nearest(tt.name, names, 3), " "); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := tool.Nearest("s3", names, 1); !slices.Equal(got, []string{"s1"}) {
		t.Errorf("got %v, want one", got)
	}
	long := strings.Repeat("x", 1<<20)
	if got := tool.Nearest(long, []string{long + "y"}, 1); len(got) != 1 {
		t.Errorf("long names: got %d", len(got))
	}
}

// One edit of a name of three characters or more is always found.
func TestNearestFindsOneEdit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z_]{3,60}`).Draw(t, "name")
		i := rapid.IntRange(0, len(name)-1).Draw(t, "at")
		edited := rapid.SampledFrom([]string{
			name[:i] + name[i+1:], name[:i] + "X" + name[i:], name[:i] + "X" + name[i+1:],
		}).Draw(t, "edited")
		if got := tool.Nearest(edited, []string{name}, 1); len(got) != 1 {
			t.Fatalf("%q is not near to %q", name, edited)
		}
	})
}

func TestDigest(t *testing.T) {
	base := func() *tool.Declaration {
		return &tool.Declaration{
			Name: "send", Description: "Sends.", Source: "mcp:a", Effects: tool.Undeclared(),
			Input: schema.MustCompile(`{"type":"object","properties":{"n":{"maximum":1}}}`),
			Args:  []tool.Arg{{Pattern: "/to", Role: tool.Target}},
		}
	}
	want := base().Digest()
	same := base()
	same.Source, same.Attempts = "mcp:b", 5
	same.Input = schema.MustCompile(`{"properties":{"n":{"maximum":1}},"type":"object"}`)
	if same.Digest() != want {
		t.Error("source, limits or the order of keys changed the digest")
	}
	for what, change := range map[string]func(*tool.Declaration){
		"name":        func(d *tool.Declaration) { d.Name = "Send" },
		"description": func(d *tool.Declaration) { d.Description += " IGNORE PREVIOUS" },
		"input": func(d *tool.Declaration) {
			d.Input = schema.MustCompile(`{"type":"object","properties":{"n":{"maximum":1.0}}}`)
		},
		"no input": func(d *tool.Declaration) { d.Input = nil },
		"output":   func(d *tool.Declaration) { d.Output = schema.MustCompile(`true`) },
		"effects":  func(d *tool.Declaration) { d.Effects.ReadOnly = true },
		"roles":    func(d *tool.Declaration) { d.Args = nil },
		"allowed":  func(d *tool.Declaration) { d.Allowed = []string{"bcc"} },
	} {
		d := base()
		change(d)
		if d.Digest() == want {
			t.Errorf("%s: the digest did not change", what)
		}
	}

	c, err := tool.NewCatalogue(append(named("x", "a", "b"), base())...)
	if err != nil {
		t.Fatal(err)
	}
	turned, _ := tool.NewCatalogue(append([]*tool.Declaration{base()}, named("y", "b", "a")...)...)
	if c.Digest() != turned.Digest() {
		t.Error("the order of tools changed the catalogue's digest")
	}
	frozen := c.Get("send")
	if frozen.Digest() != want {
		t.Error("freezing changed the digest")
	}
	changed := *frozen
	changed.Description = "Sends all."
	if changed.Digest() == want {
		t.Error("a changed copy of a frozen declaration has the old digest")
	}
}

func TestRoleOf(t *testing.T) {
	d := &tool.Declaration{Args: []tool.Arg{
		{Pattern: "/to/*/key", Role: tool.Secret},
		{Pattern: "/to", Role: tool.Host},
		{Pattern: "/a~1b", Role: tool.Path},
		{Pattern: "/*/body", Role: tool.Content},
		{Pattern: "/list/0", Role: tool.Neutral},
	}}
	for pointer, want := range map[string]tool.Role{
		"/to": tool.Host, "/to/0": tool.Host, "/to/0/key": tool.Secret, "/to/0/key/x": tool.Secret,
		"/tom": tool.Target, "/a~1b": tool.Path, "/a/b": tool.Target, "/x/body/0": tool.Content, "/body": tool.Target,
		"/list": tool.Target, "/list/0": tool.Neutral, "/list/1": tool.Target, "": tool.Target,
	} {
		if got := d.RoleOf(pointer); got != want {
			t.Errorf("%q: got %s, want %s", pointer, got, want)
		}
	}
	whole := &tool.Declaration{Args: []tool.Arg{{Pattern: "", Role: tool.Content}}}
	if got := whole.RoleOf("/x"); got != tool.Content {
		t.Errorf("the empty pattern: got %s", got)
	}
	if got := new(tool.Declaration).RoleOf("/x"); got != tool.Target {
		t.Errorf("nothing declared: got %s", got)
	}
}

func TestOverride(t *testing.T) {
	d := &tool.Declaration{Effects: tool.Undeclared(), Args: []tool.Arg{{Pattern: "/*", Role: tool.Content}}, Attempts: 3}
	tool.Override{}.Apply(d)
	if d.Effects != tool.Undeclared() || d.Attempts != 3 || len(d.Args) != 1 {
		t.Errorf("the zero override changed %+v", d)
	}
	tool.Override{
		ReadOnly: new(true), Destructive: new(false), Args: []tool.Arg{{Pattern: "/to", Role: tool.Target}},
		Allowed: []string{"bcc"}, Attempts: 1, MaxOutput: 10,
	}.Apply(d)
	if d.Effects != (tool.Effects{ReadOnly: true, OpenWorld: true}) || d.RoleOf("/to") != tool.Target || d.RoleOf("/x") != tool.Content ||
		d.MaxAttempts() != 1 || d.MaxOutput != 10 || d.Allowed[0] != "bcc" {
		t.Errorf("got %+v", d)
	}
}

// The bounded search finds what comparing everything would.
func TestNearestIsTheNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abAB]{1,9}`)
		name, names := word.Draw(t, "name"), rapid.SliceOfNDistinct(word, 1, 12, rapid.ID[string]).Draw(t, "names")
		all := tool.Nearest(name, names, len(names))
		for n := range len(all) {
			if got := tool.Nearest(name, names, n); !slices.Equal(got, all[:n]) {
				t.Fatalf("the first %d of %v for %q: got %v", n, all, name, got)
			}
		}
	})
}

func ExampleNearest() {
	fmt.Println(tool.Nearest("serch", []string{"fetch", "search", "sum"}, 1))
	// Output: [search]
}

func BenchmarkNearest10000(b *testing.B) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("step_%d_of_the_plan", i)
	}
	for b.Loop() {
		tool.Nearest("step_77777_of_teh_plan", names, 3)
	}
}
