package agent_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/value"
)

// Every setting comes back from a record as it was: one that did not would make
// a resumed run take another path.
func TestSettingsRoundTrip(t *testing.T) {
	source := agent.Source()
	source.MaxToolCalls = agent.Int(3)
	full := agent.Settings{
		MaxToolCalls: agent.Int(0), MaxInvalidSubmissions: agent.Int(1), MaxRounds: agent.Int(2), MaxNudges: agent.Int(3),
		MaxTokens: 4, MaxBytes: agent.Int(5), Deadline: 6 * time.Second, RequireObservation: true,
		Placeholders: agent.Placeholders("/a", "").Wide(), Mixed: agent.Sole, Burst: agent.Overshoot, Siblings: agent.Once,
		RepeatLimit: agent.Int(7), MaxTranscript: 8, MaxReplyTokens: 9, Coerce: true,
	}
	full.MinToolCalls = 0
	for _, s := range []agent.Settings{{}, source, full, {MinToolCalls: 2}} {
		v, err := s.Value()
		if err != nil {
			t.Fatal(err)
		}
		got, err := agent.ParseSettings(value.MustParse(v.String()))
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, s)
		}
	}
	for i := range reflect.TypeFor[agent.Settings]().NumField() {
		f := reflect.TypeFor[agent.Settings]().Field(i)
		if f.Name != "MinToolCalls" && f.IsExported() && reflect.ValueOf(full).Field(i).IsZero() {
			t.Errorf("%s is not tried", f.Name)
		}
	}
	if _, err := agent.ParseSettings(value.MustParse(`{"max_wishes":3}`)); err == nil {
		t.Error("an unknown setting was left out")
	}
}
