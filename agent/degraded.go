package agent

// A Degradation is a fallback that a run needed.
type Degradation struct {
	Code    string `json:"code"`
	Round   int    `json:"round"` // in which it was needed first
	Times   int    `json:"times"`
	Message string `json:"message"`
}

// Codes of degradations.
const (
	CodeForcedChoice      = "forced_choice"      // the provider could not honour the choice
	CodeCoercion          = "coercion"           // a string was read as JSON
	CodeRawEdit           = "raw_edit"           // a raw message could not go back as it was
	CodeNudge             = "nudge"              // the model had to be asked to submit
	CodeFailedSubmissions = "failed_submissions" // how many were invalid before the run ended
	CodeShortened         = "shortened_results"  // of the transcript
	CodeUsageMissing      = "usage_not_reported"
	CodeUsageNegative     = "usage_negative"
	CodeCut               = "model_call_cut" // at the deadline
)

type degraded []Degradation

func (d *degraded) add(code string, round int, message string) {
	*d = append(*d, Degradation{code, round, 1, message})
}

// count keeps one entry of a code, however often it happens.
func (d *degraded) count(code string, round, times int, message string) {
	for i := range *d {
		if (*d)[i].Code == code {
			(*d)[i].Times += times
			return
		}
	}
	*d = append(*d, Degradation{code, round, times, message})
}
