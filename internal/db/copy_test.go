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

// A database is counted by a path that is relative, too, and one that is put back is vacant no more.
func TestCountRelative(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(here, filepath.Join(t.TempDir(), "yardmaster.db"))
	if err != nil {
		t.Fatal(err)
	}
	dsn := "sqlite:" + path
	d, err := Open(t.Context(), dsn, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if have, err := Count(t.Context(), dsn); err != nil || have.Schema == 0 || len(have.Rows) < 100 {
		t.Error(len(have.Rows), have.Schema, err)
	}
	if err := Vacant(t.Context(), dsn); err == nil {
		t.Error("a database that is there counts as none")
	}
}
