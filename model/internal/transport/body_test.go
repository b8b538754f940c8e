package transport

import (
	"bytes"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
)

func TestExtra(t *testing.T) {
	reserved := []string{"model"}
	for text, want := range map[string]string{`{"model":1}`: `Extra sets "model"`, `[]`: "Extra is a", `{"top_k":1}`: ""} {
		err := CheckExtra(value.MustParse(text), reserved)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	if err := CheckExtra(value.Value{}, reserved); err != nil {
		t.Errorf("none: %v", err)
	}
	if got, want := string(AppendExtra([]byte(`{"a":1`), value.MustParse(`{"b":[2],"c\"":3}`))), `{"a":1,"b":[2],"c\"":3`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestToolsAreDeclaredOnce(t *testing.T) {
	tools := []*model.Tool{{Name: "a"}, {Name: "b"}}
	declared := 0
	for range 2 {
		body, err := AppendTools(nil, tools, "test", func(t *model.Tool) ([]byte, error) { declared++; return []byte(t.Name), nil })
		if got := string(bytes.Join(body, nil)); err != nil || got != "a,b" {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if declared != 2 {
		t.Errorf("%d declarations were written, want one for each tool", declared)
	}
}
