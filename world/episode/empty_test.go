package episode_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/callsheet/callsheet/world/episode"
)

func TestAnEmptyFileIsNamedAndTheOthersGoOn(t *testing.T) {
	dir := t.TempDir()
	empty, good := filepath.Join(dir, "empty.jsonl"), filepath.Join(dir, "good.txt")
	for path, text := range map[string]string{empty: "", good: "user: hello\nassistant: hi\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rec, err := episode.Read(t.Context(), []string{empty, good}, episode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Faults) != 1 || rec.Faults[0].File != empty || len(rec.Episodes) == 0 {
		t.Errorf("faults %v and %d episodes, want the empty file named and the other read", rec.Faults, len(rec.Episodes))
	}
}
