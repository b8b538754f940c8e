package schema_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// The official test suite, both drafts. A group is left out only where it asks
// for another document, or for what is refused on purpose; the reasons are
// counted, so that a new one shows.
func TestSuite(t *testing.T) {
	files, err := filepath.Glob("testdata/suite/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no suite: %v", err)
	}
	ran, refused := 0, map[string]int{}
	for _, file := range files {
		draft := "http://json-schema.org/draft-07/schema#"
		if strings.Contains(file, "2020-12") {
			draft = "https://json-schema.org/draft/2020-12/schema"
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		suite, err := value.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, group := range suite.Elements() {
			description, _ := group.Get("description")
			doc, _ := group.Get("schema")
			if _, has := doc.Get("$schema"); !has && doc.Kind() == value.Object {
				members := []value.Member{{Key: "$schema", Value: value.MustText(draft)}}
				for k, m := range doc.Members() {
					members = append(members, value.Member{Key: k, Value: m})
				}
				doc = value.ObjectOf(members...)
			}
			s, err := schema.Compile(doc)
			var fault *schema.CompileError
			if errors.As(err, &fault) {
				switch {
				case strings.Contains(fault.Message, "another document"):
					refused["another document"]++
				case strings.Contains(fault.Message, "RE2"):
					refused["RE2"]++
				default:
					t.Errorf("%s: %s: %v", file, description, err)
				}
				continue
			}
			tests, _ := group.Get("tests")
			for _, test := range tests.Elements() {
				ran++
				what, _ := test.Get("description")
				data, _ := test.Get("data")
				valid, _ := test.Get("valid")
				want, _ := valid.Bool()
				faults := s.Validate(data)
				if got := len(faults) == 0; got != want {
					t.Errorf("%s: %s: %s: got valid %v, want %v; faults %v", file, description, what, got, want, faults)
				}
				if got := s.Fits(data); got != want {
					t.Errorf("%s: %s: %s: Fits says %v, want %v", file, description, what, got, want)
				}
				// A whole-value hole that may hold anything is never certainly wrong,
				// unless nothing at all fits; then Validate says so as well.
				holes := map[string]*schema.Schema{"": nil}
				if got := s.FitsWithHoles(value.MustText("$s1"), holes); len(got) > 0 && want {
					t.Errorf("%s: %s: %s: a hole is refused: %v", file, description, what, got)
				}
			}
		}
	}
	t.Logf("%d tests ran; groups refused: %v", ran, refused)
	if ran < 1500 {
		t.Errorf("only %d tests of the suite ran", ran)
	}
}
