package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
)

// A backup that is killed is never taken for a whole one, and keeps nothing from being deleted, or
// copied again, afterwards.
func TestKilledBackup(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			h := newHoard(t, e)
			if err := os.Mkdir(filepath.Join(h.data, "git"), 0o700); err != nil {
				t.Fatal(err)
			}
			for lines := range 3 { // after the database, the repositories, the objects
				half := filepath.Join(t.TempDir(), "half")
				h.killed(lines+1, 0, "backup", half)
				if _, err := os.Stat(half); err != nil {
					t.Fatal("it was killed before it began:", err)
				}
				for _, args := range [][]string{{"restore", half}, {"restore", "--drill", half}} {
					if said, ok := h.run(args...); ok || !strings.Contains(said, "is no whole backup") {
						t.Errorf("%q is %v: %s", args, ok, said)
					}
				}
				if said, ok := h.run("backup", half); ok || !strings.Contains(said, "is not empty") {
					t.Errorf("a backup into half of one is %v: %s", ok, said)
				}
			}
			whole := filepath.Join(t.TempDir(), "whole")
			if said, ok := h.run("backup", whole); !ok || !strings.Contains(said, "is whole") {
				t.Errorf("%s", said)
			}
			if said, ok := h.run("backup", filepath.Join(h.data, "within")); ok || !strings.Contains(said, "is in the data folder") {
				t.Errorf("%s", said)
			}
		})
	}
}
