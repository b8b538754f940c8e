package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"testing"
)

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	if err := SyncDir(dir); err != nil {
		t.Error(err)
	}
	err := SyncDir(filepath.Join(dir, "nowhere"))
	if synced := runtime.GOOS != "windows"; synced != errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
