package db

import (
	"os"
	"path/filepath"
	"testing"
)

// A restore that is cut off, here by a copy that cannot be read, leaves no half database, which a
// server would start on.
func TestRestoreLeavesNoHalf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to := filepath.Join(dir, "yardmaster.db")
	if err := Restore(t.Context(), "sqlite:"+to, t.TempDir()); err == nil {
		t.Error("a folder was taken for a database")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Error("something is left:", left, err)
	}
	good := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(good, []byte("whole"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), "sqlite:"+to, good); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(to); err != nil || string(text) != "whole" {
		t.Errorf("%q, %v", text, err)
	}
	if err := Restore(t.Context(), "sqlite:"+to, good); err == nil {
		t.Error("a database was written over")
	}
}
