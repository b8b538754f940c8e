package agent

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
)

// Settings bound and shape a run (spec/agent.md §1). The zero value is the
// defaults. Where 0 means something the field is a pointer, and nil is the
// default.
type Settings struct {
	// MaxToolCalls is how many calls of catalogue tools may be spent; default
	// 8. Below 0 reads as 0, and 0 forces the submission from the first round.
	MaxToolCalls *int
	// MaxInvalidSubmissions is how many submissions that do not validate are
	// answered with their errors; default 2. They cost no tool budget. One more
	// is a protocol error. Below 0 reads as 0.
	MaxInvalidSubmissions *int
	// MaxRounds bounds the model calls of the run; default twice MaxToolCalls
	// and 4 more. A round is one model call, whatever is in its reply.
	MaxRounds *int
	// MaxNudges is how many replies without any call are answered with the
	// request to submit; default 1. One more is a protocol error.
	MaxNudges *int

	MaxTokens int           // of all rounds as far as reported; reaching it forces one last round; 0: off
	MaxBytes  *int          // of the transcript; reaching it ends the run before the next model call; default 16 MiB, 0: off
	Deadline  time.Duration // wall time, pauses for a person not counted; reaching it forces one last round; 0: off

	// RequireObservation sends a transition back that applies no rule and has
	// no observation, or only a stand-in (spec/agent.md §2).
	RequireObservation bool
	// Placeholders finds text that stands for an answer; nil: nothing is looked
	// for.
	Placeholders *Detector

	Mixed Mixed // what a reply with calls and a submission means
	Burst Burst // what happens to calls past the budget in one reply

	MinToolCalls int // a submission before that many calls is invalid
	// Siblings Once runs identical calls of one reply once, answers all of
	// them, and spends one.
	Siblings Siblings
	// RepeatLimit is how often the same call may have the same result running
	// before it is answered with a note; the next forces the submission.
	// Default 3, 0: off.
	RepeatLimit *int
	// MaxTranscript is how many bytes of transcript are sent before the oldest
	// tool results are shortened; 0: off.
	MaxTranscript int

	// MaxReplyTokens bounds one reply; 0: the model's own bound.
	MaxReplyTokens int
	// Coerce takes JSON that came as a string where the schema wants an object
	// or a list; each such repair is listed in the result. Off, it is refused
	// with a message that says so.
	Coerce bool

	source bool // the profile of [Source]
}

// Mixed says how a reply with calls and a submission is taken.
type Mixed uint8

// The ways.
const (
	InOrder  Mixed = iota // as they stand: calls before the first valid submission run, those after it do not
	Graceful              // all calls run first; a submission is accepted only if none of them failed
	Sole                  // a submission that is not alone is invalid
)

// Burst says what happens to calls past the tool budget in one reply.
type Burst uint8

// The ways.
const (
	Refuse    Burst = iota // they are answered and not run
	Overshoot              // they run; one over is tolerated, two or more fail the run
)

// Siblings says how identical calls in one reply are taken.
type Siblings uint8

// The ways.
const (
	Each Siblings = iota // each runs and is spent
	Once                 // one runs and is spent
)

// The defaults.
const (
	DefaultMaxToolCalls          = 8
	DefaultMaxInvalidSubmissions = 2
	DefaultMaxNudges             = 1
	DefaultMaxBytes              = 16 << 20
	DefaultRepeatLimit           = 3
	// Grace is what the last round gets when the deadline has passed: enough
	// for a model to write a submission, and no more.
	Grace = 60 * time.Second
)

// Int is a pointer to n, for the settings in which 0 means something.
func Int(n int) *int { return &n }

// Source is the compatibility profile: the loop of the world-model agent as its
// source has it, for the same scripts with the same result (spec/agent.md §5).
// Fields may be set afterwards; what the source has no word for is off.
func Source() Settings {
	return Settings{Burst: Overshoot, MaxBytes: Int(0), RepeatLimit: Int(0), source: true}
}

// Validate names the setting that makes no sense.
func (s *Settings) Validate() error {
	for _, f := range []struct {
		name string
		n    int
	}{
		{"MaxRounds", or(s.MaxRounds, 0)}, {"MaxNudges", or(s.MaxNudges, 0)}, {"MaxTokens", s.MaxTokens},
		{"MaxBytes", or(s.MaxBytes, 0)}, {"Deadline", int(s.Deadline)}, {"MinToolCalls", s.MinToolCalls},
		{"RepeatLimit", or(s.RepeatLimit, 0)}, {"MaxTranscript", s.MaxTranscript}, {"MaxReplyTokens", s.MaxReplyTokens},
	} {
		if f.n < 0 {
			return fmt.Errorf("%s is negative", f.name)
		}
	}
	switch {
	case s.Mixed > Sole:
		return errors.New("Mixed is unknown")
	case s.Burst > Overshoot:
		return errors.New("Burst is unknown")
	case s.Siblings > Once:
		return errors.New("Siblings is unknown")
	case s.MinToolCalls > s.maxToolCalls():
		return fmt.Errorf("MinToolCalls is %d and MaxToolCalls %d: no submission could be valid", s.MinToolCalls, s.maxToolCalls())
	}
	return nil
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func (s *Settings) maxToolCalls() int { return max(0, or(s.MaxToolCalls, DefaultMaxToolCalls)) }

func (s *Settings) maxInvalid() int {
	return max(0, or(s.MaxInvalidSubmissions, DefaultMaxInvalidSubmissions))
}

func (s *Settings) maxRounds() int {
	calls := min(s.maxToolCalls(), (math.MaxInt-4)/2)
	return or(s.MaxRounds, 2*calls+4)
}

func (s *Settings) maxNudges() int   { return or(s.MaxNudges, DefaultMaxNudges) }
func (s *Settings) maxBytes() int    { return or(s.MaxBytes, DefaultMaxBytes) }
func (s *Settings) repeatLimit() int { return or(s.RepeatLimit, DefaultRepeatLimit) }

// settingsDoc is the settings as a record keeps them.
type settingsDoc struct {
	MaxToolCalls          *int         `json:"max_tool_calls,omitzero"`
	MaxInvalidSubmissions *int         `json:"max_invalid_submissions,omitzero"`
	MaxRounds             *int         `json:"max_rounds,omitzero"`
	MaxNudges             *int         `json:"max_nudges,omitzero"`
	MaxTokens             int          `json:"max_tokens,omitzero"`
	MaxBytes              *int         `json:"max_bytes,omitzero"`
	Deadline              int64        `json:"deadline_ns,omitzero"`
	RequireObservation    bool         `json:"require_observation,omitzero"`
	Placeholders          *detectorDoc `json:"placeholders,omitzero"`
	Mixed                 Mixed        `json:"mixed,omitzero"`
	Burst                 Burst        `json:"burst,omitzero"`
	MinToolCalls          int          `json:"min_tool_calls,omitzero"`
	Siblings              Siblings     `json:"siblings,omitzero"`
	RepeatLimit           *int         `json:"repeat_limit,omitzero"`
	MaxTranscript         int          `json:"max_transcript,omitzero"`
	MaxReplyTokens        int          `json:"max_reply_tokens,omitzero"`
	Coerce                bool         `json:"coerce,omitzero"`
	Source                bool         `json:"source,omitzero"`
}

type detectorDoc struct {
	Fields []string `json:"fields"`
	Wide   bool     `json:"wide,omitzero"`
}

// Value is the settings as JSON, for a record: a run that goes on does so under
// the settings that it began with.
func (s *Settings) Value() (value.Value, error) {
	d := settingsDoc{
		s.MaxToolCalls, s.MaxInvalidSubmissions, s.MaxRounds, s.MaxNudges, s.MaxTokens, s.MaxBytes, int64(s.Deadline),
		s.RequireObservation, nil, s.Mixed, s.Burst, s.MinToolCalls, s.Siblings, s.RepeatLimit, s.MaxTranscript,
		s.MaxReplyTokens, s.Coerce, s.source,
	}
	if p := s.Placeholders; p != nil {
		d.Placeholders = &detectorDoc{p.fields, p.wide}
	}
	return value.Of(d)
}

// ParseSettings reads what [Settings.Value] wrote. Unknown members are an error:
// a setting that is not understood must not be left out.
func ParseSettings(v value.Value) (Settings, error) {
	var d settingsDoc
	if err := v.Decode(&d, json.RejectUnknownMembers(true)); err != nil {
		return Settings{}, fmt.Errorf("stored settings: %w", err)
	}
	s := Settings{
		d.MaxToolCalls, d.MaxInvalidSubmissions, d.MaxRounds, d.MaxNudges, d.MaxTokens, d.MaxBytes, time.Duration(d.Deadline),
		d.RequireObservation, nil, d.Mixed, d.Burst, d.MinToolCalls, d.Siblings, d.RepeatLimit, d.MaxTranscript,
		d.MaxReplyTokens, d.Coerce, d.Source,
	}
	if p := d.Placeholders; p != nil {
		s.Placeholders = &Detector{p.Fields, p.Wide}
	}
	return s, s.Validate()
}
