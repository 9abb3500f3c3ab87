package e2e

import (
	"os"
	"os/exec"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// TestChaosOnNodes kills, freezes and cuts off three servers on one database.
func TestChaosOnNodes(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), binary, "chaos", "--nodes", "3", "--minutes", "0.5", "--seed", "2",
		"--database", dbtest.DSN(t, db.Postgres))
	c.Env = append(os.Environ(), "TMPDIR="+root)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// On SQLite, `make chaos` does the same.
func TestChaosOnPostgreSQL(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), binary, "chaos", "--minutes", "0.4", "--seed", "5", "--database", dbtest.DSN(t, db.Postgres))
	c.Env = append(os.Environ(), "TMPDIR="+root)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
