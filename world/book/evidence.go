package book

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/episode"
)

// Evidence is the raw turns behind a package: each a recorded action and what
// came back, in the order of its episode.
type Evidence struct {
	byID     map[string]*world.Evidence
	position map[string]turn
	episodes map[string][]string // evidence ids in order
}

type turn struct {
	episode string
	n       int // from 1
}

// Evidence reads the raw turns; they are kept.
func (b *Book) Evidence() (*Evidence, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.evidence != nil {
		return b.evidence, nil
	}
	text, err := b.optional("evidence/local_transitions.jsonl")
	if err != nil {
		return nil, err
	}
	records, err := world.ReadLines[world.Evidence](text)
	if err != nil {
		return nil, fmt.Errorf("evidence/local_transitions.jsonl: %w", err)
	}
	if text, err = b.optional("evidence/transitions.jsonl"); err != nil {
		return nil, err
	}
	slices, err := world.ReadLines[episode.Slice](text)
	if err != nil {
		return nil, fmt.Errorf("evidence/transitions.jsonl: %w", err)
	}
	e := &Evidence{byID: map[string]*world.Evidence{}, position: map[string]turn{}, episodes: map[string][]string{}}
	byTransition := map[string]string{}
	for i := range records {
		r := &records[i]
		e.byID[r.ID] = r
		byTransition[r.TransitionID] = r.ID
	}
	for _, s := range slices {
		if id := byTransition[s.ID]; id != "" {
			e.episodes[s.EpisodeID] = append(e.episodes[s.EpisodeID], id)
			e.position[id] = turn{s.EpisodeID, len(e.episodes[s.EpisodeID])}
		}
	}
	b.evidence = e
	return e, nil
}

// Resolve finds the evidence that a reference means: "evidence:ID", "demo:ID"
// with or without "demo_" before the id, or the id alone. It is nil when there
// is none.
func (e *Evidence) Resolve(ref string) *world.Evidence {
	ref = strings.TrimSpace(ref)
	for _, prefix := range []string{"evidence:", "demo:", "demonstration:"} {
		ref = strings.TrimPrefix(ref, prefix)
	}
	return e.byID[strings.TrimPrefix(ref, "demo_")]
}

// Turn is the place of a piece of evidence: its episode and its number there,
// from 1.
func (e *Evidence) Turn(id string) (episode string, n int) {
	t, ok := e.position[id]
	if !ok {
		return e.byID[id].EpisodeID, 0
	}
	return t.episode, t.n
}

// At returns turn n of an episode, counted from 1; nil without one.
func (e *Evidence) At(episode string, n int) *world.Evidence {
	ids := e.episodes[episode]
	if n < 1 || n > len(ids) {
		return nil
	}
	return e.byID[ids[n-1]]
}

// Episodes are the ids of the episodes, sorted, and how many turns each has.
func (e *Evidence) Episodes() (ids []string, turns map[string]int) {
	turns = map[string]int{}
	for id, t := range e.episodes {
		ids = append(ids, id)
		turns[id] = len(t)
	}
	slices.Sort(ids)
	return ids, turns
}

// Recording reads the episodes that the package was made from, and their
// slices.
func (b *Book) Recording() ([]episode.Episode, []episode.Slice, error) {
	text, err := b.optional("evidence/episodes.jsonl")
	if err != nil {
		return nil, nil, err
	}
	eps, err := world.ReadLines[episode.Episode](text)
	if err != nil {
		return nil, nil, fmt.Errorf("evidence/episodes.jsonl: %w", err)
	}
	var slices []episode.Slice
	for i := range eps {
		slices = append(slices, episode.Segment(&eps[i], 0)...)
	}
	return eps, slices, nil
}
