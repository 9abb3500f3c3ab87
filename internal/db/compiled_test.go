package db

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
)

// TestUsedStatementsStayCompiled holds that a statement that is used is compiled once, however
// many others come and go.
func TestUsedStatementsStayCompiled(t *testing.T) {
	t.Parallel()
	pool, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "some.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	b := &sqliteBackend{}
	c, err := b.connect(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	const others = 3 * maxStatements
	for i := range others {
		for _, text := range []string{"SELECT 1", "SELECT 2", fmt.Sprintf("SELECT %d", i+3)} {
			if _, err := c.prepare(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	if c.compiled != others+2 || len(c.stmts) != maxStatements {
		t.Errorf("%d texts were compiled, and %d are kept; want %d and %d", c.compiled, len(c.stmts), others+2, maxStatements)
	}
	if err := b.release(); err != nil {
		t.Error(err)
	}
}
