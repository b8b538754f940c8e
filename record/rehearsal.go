package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/value"
)

func (o *Options) kind() string {
	if o.Receipt != nil {
		return KindRehearsal
	}
	return KindPlan
}

// mustBeLive refuses a rehearsal where something is to be called or taken over.
func (h *History) mustBeLive() error {
	if h.Summary.Kind == KindRehearsal {
		return fmt.Errorf("run %s: %w", h.Summary.ID, ErrRehearsal)
	}
	return nil
}

// maxReceipts is how many rehearsals are looked at for a receipt, the latest
// first: more than anybody rehearses between a plan and its run.
const maxReceipts = 1000

// A Kept receipt is one with the run that it is of.
type Kept struct {
	Run     string
	Receipt value.Value
}

// Receipts are the receipts of the rehearsals of a plan that have ended with
// every step ok, the latest first. What they say is for their writer to judge.
func Receipts(ctx context.Context, store *journal.Store, plan value.Digest) ([]Kept, error) {
	runs, err := store.Runs(ctx, journal.Filter{Kind: KindRehearsal, Status: StatusOK, Limit: maxReceipts})
	if err != nil {
		return nil, err
	}
	var kept []Kept
	for _, sum := range runs {
		header, err := sum.Header()
		if err != nil {
			return nil, err
		}
		if header.Plan != plan {
			continue
		}
		receipt, err := Receipt(ctx, store, sum.ID)
		if err != nil {
			return nil, err
		}
		kept = append(kept, Kept{sum.ID, receipt})
	}
	return kept, nil
}

// ErrNoReceipt is a run without a receipt: no rehearsal, or one that did not
// come to its end.
var ErrNoReceipt = errors.New("the run has no receipt of a rehearsal")

// Receipt is the receipt of a rehearsal, by the whole id of its run.
func Receipt(ctx context.Context, store *journal.Store, id string) (value.Value, error) {
	sum, err := store.Summary(ctx, id)
	if err != nil {
		return value.Value{}, err
	}
	if sum.Kind != KindRehearsal || !sum.Finished {
		return value.Value{}, fmt.Errorf("run %s: %w", id, ErrNoReceipt)
	}
	// Before the final checkpoint stands the last record.
	for e, err := range store.Entries(ctx, id, max(0, sum.Records()-2)) {
		if err != nil {
			return value.Value{}, err
		}
		if e.Kind != kindEnd {
			continue
		}
		body, err := e.Body(ctx)
		if err != nil {
			return value.Value{}, err
		}
		if receipt, ok := body.Get("receipt"); ok && !receipt.IsNull() {
			return receipt, nil
		}
	}
	return value.Value{}, fmt.Errorf("run %s: %w", id, ErrNoReceipt)
}
