package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

func load(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	return config.Parse("callsheet.yaml", dir, []byte(text))
}

// everything uses every section.
const everything = `
sources:
  demo: {builtin: demo}
  files:
    mcp:
      command: [npx, -y, server, ./work]
      env: [LANG, DEBUG=1]
      env_secrets: {TOKEN: hub}
      pool: 2
      start_timeout: 1m
      max_output: 1MiB
      json: true
      trust: true
    prefix: fs_
    only: [read_file]
  remote:
    mcp: {url: "https://example.com/mcp", headers: {Authorization: {secret: hub, prefix: "Bearer "}}}
  known: {catalogue: tools.json}
  local:
    commands:
      count:
        description: Counts bytes
        command: [/usr/bin/wc, [-m, --lines, "{n}"], --, "{path}"]
        dir: ./work
        env: [LANG]
        env_secrets: {TOKEN: hub}
        params: {path: {path: file}, n: {allow_dash: true}}
        input: {type: object, properties: {path: {type: string}, n: {type: integer, maximum: 9007199254740993}}}
        output: text
        output_schema: {type: string}
        effects: {read_only: true}
        args: {/path: path, /n: neutral}
        deadline: 10s
        attempts: 3
        delay: 500ms
        max_output: 64KiB
        concurrency: 2
        rate: 10/m
overrides:
  fs_read_file: {approve: always, allow_args: [bcc]}
approve: destructive
on_ask: {command: [/bin/true], deadline: 5s}
limits: {budget: 100, deadline: 1h30m, output: 1MB, args: 2MiB, plan: {bytes: 1MiB, steps: 10, depth: 8}}
secrets: {hub: {env: HUB_TOKEN}}
policy: {rules: [{id: a, effect: ask, tools: ["*"]}]}
journal: {file: runs.db, contents: digests}
rehearsal: {required: true, world: shop.world}
model: {provider: openai, model: gpt, secret: hub, base_url: "http://127.0.0.1"}
`

func TestEveryKey(t *testing.T) {
	c, err := load(t, everything)
	if err != nil {
		t.Fatal(err)
	}
	local := c.Sources.Get("local").Commands.Get("count")
	if got := []any{
		len(c.Sources), c.Sources[1].Name, c.Sources.Get("files").Prefix, time.Duration(c.Sources.Get("files").MCP.StartTimeout),
		int(local.MaxOutput), time.Duration(local.Rate), local.Command[1].Optional, local.Input.String(), *c.Limits.Budget,
		int(c.Limits.Output), time.Duration(c.Limits.Deadline), c.Policy.String(), c.Journal.Contents, c.Overrides[0].Value.Approve,
		filepath.IsAbs(c.Journal.File), filepath.IsAbs(c.Sources.Get("known").Catalogue), filepath.Base(local.Dir),
		c.Rehearsal.Required, filepath.IsAbs(c.Rehearsal.World),
	}; !cmp.Equal(got, []any{
		5, "files", "fs_", time.Minute,
		64 << 10, 6 * time.Second, true, `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer","maximum":9007199254740993}}}`, 100,
		1_000_000, 90 * time.Minute, `{"rules":[{"id":"a","effect":"ask","tools":["*"]}]}`, config.Contents("digests"), config.Always("always"),
		true, true, "work",
		true, true,
	}) {
		t.Errorf("got %v", got)
	}
	if line, column := c.Position("/policy/rules/0/id"); line != 45 || column != 23 {
		t.Errorf("position of a rule's id: got %d:%d", line, column)
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "{}", "null"} {
		if c, err := load(t, text); err != nil || len(c.Sources) != 0 {
			t.Errorf("%q: got %v %v", text, c, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown key", "limitz: {}", "1:1: unknown key limitz; did you mean limits?"},
		{"unknown key far from all", "limits:\n  plan:\n    speed: 1", "3:5: unknown key speed; there are bytes, steps, depth"},
		{"every fault is listed", "limitz: {}\napprove: sometimes\nlimits: {budget: -1}", "1:1: unknown key limitz; did you mean limits?\n2:10: approve is \"sometimes\"; use destructive\n3:18: budget must be a whole number of at least 0, not -1"},
		{"case", "Limits: {}", "1:1: unknown key Limits; did you mean limits?"},
		{"duplicate", "limits: {budget: 1}\nlimits: {budget: 2}", `2:1: the key limits stands twice; keep one`},
		{"duplicate below", "limits: {budget: 1, budget: 2}", `1:21: the key budget stands twice; keep one`},
		{"a header in the clear", "sources: {a: {mcp: {url: 'http://a', headers: {X: 'Bearer sesame'}}}}", `1:51: X: name a secret, as in {secret: NAME, prefix: "Bearer "}; its value is in an environment variable, never in this file`},
		{"a header of no secret", "sources: {a: {mcp: {url: 'http://a', headers: {X: {secret: hub}}}}}", `1:48: no secret "hub" under secrets; add one: secrets: {hub: {env: VARIABLE}}`},
		{"wrong type", "sources: [demo]", "1:1: sources must be a mapping, not a list"},
		{"a number for text", "journal: {file: 7}", "1:17: file must be text, not 7; put it in quotes"},
		{"a fraction", "limits: {budget: 1.5}", "1:18: budget must be a whole number of at least 0, not 1.5"},
		{"text for a boolean", "sources: {a: {mcp: {command: [x], trust: yes}}}", `1:42: trust must be true or false, not "yes"`},
		{"empty", "limits:\n", "1:1: limits is empty; give it a value or remove the key"},
		{"a bare duration", "limits: {deadline: 10}", `1:20: deadline: write a duration with its unit, as in "500ms", "10s", "5m", "24h" or "7d"`},
		{"a negative duration", "limits: {deadline: -1s}", `1:20: deadline: a duration cannot be negative`},
		{"a bare size", "limits: {output: 10}", `1:18: output: write a size with its unit, as in "512B", "64KiB" or "16MiB"`},
		{"a huge size", "limits: {output: 99999999999GiB}", `1:18: output: a size is at least 1B and at most what memory can hold`},
		{"a rate", "overrides: {a: {rate: 10}}", `1:23: rate: write a rate as calls over a unit of time, as in "10/s", "30/m" or "5/h"`},
		{"a role", "overrides: {a: {args: {/x: goal}}}", `1:28: /x is "goal"; use target, host, path, program, content, secret or neutral`},
		{"a pointer", "overrides: {a: {args: {x: target}}}", `1:27: x is no JSON pointer; write /x`},
		{"attempts", "overrides: {a: {attempts: 0}}", `1:27: attempts is 0; it counts the first call too, so at least 1 and at most 100`},
		{"effects", "overrides: {a: {effects: {read_only: true, destructive: true}}}", `1:17: a tool that is read_only cannot be destructive`},
		{"no kind", "sources: {a: {prefix: x}}", "1:11: source a: say where its tools come from with builtin, mcp, commands or catalogue"},
		{"two kinds", "sources: {a: {builtin: demo, catalogue: x}}", "1:11: source a has builtin and catalogue; make them sources of their own"},
		{"no server", "sources: {a: {mcp: {}}}", "1:15: give the server a command, as in [npx, -y, some-server], or a url"},
		{"both servers", "sources: {a: {mcp: {command: [x], url: 'http://a'}}}", "1:15: a server has either a command or a url"},
		{"credentials", "sources: {a: {mcp: {url: 'http://u:p@a/'}}}", "1:26: url must be http or https, with a host and without credentials"},
		{"dir of a url", "sources: {a: {mcp: {url: 'http://a/', dir: x}}}", "1:44: dir is for a server with a command"},
		{"a secret that is none", "secrets: {token: {env: T}}\nsources: {a: {mcp: {command: [x], env_secrets: {T: tokn}}}}", `2:52: no secret "tokn" under secrets; did you mean token?`},
		{"a secret in the file", "secrets: {token: {value: s3cret}}", "1:19: unknown key value; there are env"},
		{"command: element", "sources: {a: {commands: {c: {command: [/bin/echo, '--x={y}']}}}}", `1:51: tool c: {y} stands inside the longer element "--x={y}"; let it stand alone, or declare it with embed: true`},
		{"command: program", "sources: {a: {commands: {c: {command: [no-such-program]}}}}", `1:40: tool c: no program "no-such-program" in /usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin; give its absolute path`},
		{"command: shell line", "sources: {a: {commands: {c: {command: echo hi}}}}", `1:39: command: write a list of texts; a list of texts inside it is left out when one of its args is absent`},
		{"command: none", "sources: {a: {commands: {c: {dir: work}}}}", `1:26: tool c: the first element must be the program`},
		{"model", "model: {provider: openai}", "1:1: model: name the model, as openai calls it"},
		{"hook", "on_ask: {env: [A]}", "1:1: on_ask: name the program, as in command: [/usr/local/bin/notify]"},
		{"anchor", "limits: &a {budget: 1}", "1:9: anchors and aliases are not read here; write the value out"},
		{"merge key", "limits:\n  <<: {budget: 1}", "2:3: a key must be plain text; put quotes around it"},
		{"tag", "limits: !x {budget: 1}", "1:9: tags are not read here; write the value without !x"},
		{"number as key", "sources: {1: {builtin: demo}}", "1:11: a key must be plain text; put quotes around it"},
		{"hexadecimal", "limits: {budget: 0x10}", "1:18: write the number 0x10 in decimal, as JSON does, or as text in quotes"},
		{"infinity", "limits: {budget: .inf}", "1:18: this is neither a mapping, a list, text, a number, a boolean nor null"},
		{"two documents", "limits: {}\n---\nlimits: {}", "3:7: a second document; keep everything in one"},
		{"a list", "- a", "1:1: the file must be a mapping, not a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := load(t, c.text)
			var e *config.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			want := "callsheet.yaml:" + strings.ReplaceAll(c.want, "\n", "\ncallsheet.yaml:")
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTextThatIsNotYAML(t *testing.T) {
	for _, text := range []string{"a: [", "a: 'x", "\tx: 1", "a: b: c", strings.Repeat("[", 5000), strings.Repeat("x", 300<<10), "a: \xff"} {
		_, err := load(t, text)
		var e *config.Error
		if !errors.As(err, &e) || e.Faults[0].Line < 1 || e.Faults[0].Column < 1 {
			t.Errorf("%.20q: got %v, want an *Error with a place", text, err)
		}
	}
}

func TestFindLooksInOneDirectoryOnly(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	os.Mkdir(sub, 0o700)
	path := filepath.Join(dir, config.FileName)
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := config.Find(dir); err != nil || got != path {
		t.Errorf("got %q %v, want %q", got, err, path)
	}
	if got, err := config.Find(sub); err != nil || got != "" {
		t.Errorf("below: got %q %v, want none", got, err)
	}
	if c, err := config.Load(path); err != nil || c.File() != path {
		t.Errorf("got %v %v", c, err)
	}
	if _, err := config.Load(filepath.Join(sub, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: got %v", err)
	}
}

// What the reader takes, the published schema takes too.
func TestSchemaFitsTheReader(t *testing.T) {
	s, err := schema.Compile(config.Schema())
	if err != nil {
		t.Fatal(err)
	}
	fits := value.MustParse(`{"sources":{"a":{"commands":{"c":{"command":["x",["-n","{n}"]],"deadline":"1m30s","rate":"10/m","effects":{"read_only":true},"args":{"/n":"neutral"}}}}},"limits":{"budget":0,"output":"16MiB"},"policy":"default"}`)
	if faults := s.Validate(fits); len(faults) > 0 {
		t.Errorf("faults: %v", faults)
	}
	if got := config.Schema().String(); !strings.Contains(got, `"additionalProperties":false`) || strings.Contains(got, `"description":""`) {
		t.Error("a key without a description, or an open object")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(everything)
	for _, s := range []string{"", "a: &x [*x]", "? a\n: b", "a: |\n  x\n", "a: {b: [1, {c: d}]}", "- - - a", "a: !!binary x", "\"a\\u0000\": 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := config.Parse("f", "/", []byte(text))
		if err == nil {
			return
		}
		var e *config.Error
		if !errors.As(err, &e) || len(e.Faults) == 0 {
			t.Fatalf("got %v, want faults", err)
		}
		for _, fault := range e.Faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Message == "" {
				t.Errorf("a fault without a place or a message: %+v", fault)
			}
		}
	})
}

// The configurations that the documentation shows are sound.
func TestDocumentedConfigurations(t *testing.T) {
	for _, file := range []string{"../README.md", "../docs/tools.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, found := strings.Cut(string(text), "```yaml\n")
		block, _, _ := strings.Cut(rest, "```")
		if !found {
			t.Errorf("%s shows no configuration", file)
		} else if c, err := load(t, block); err != nil || len(c.Sources) == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
}
