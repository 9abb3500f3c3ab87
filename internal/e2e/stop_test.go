package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"yardmaster/internal/db"
)

var tasksStored = db.Q[int64](`SELECT COUNT(*) FROM tasks`)

// A server that is stopped leaves its whole database in one file.
func TestStoppedServerLeavesOneFile(t *testing.T) {
	st := newStack(t)
	const filed = 40
	for range filed {
		st.file("default", "Wait for a box")
	}
	st.server.stop()
	file := filepath.Join(st.path("server"), "yardmaster.db")
	for _, beside := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(file + beside); !os.IsNotExist(err) {
			t.Errorf("yardmaster.db%s is left: %v", beside, err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	alone := st.path("alone.db")
	if err := os.WriteFile(alone, text, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := db.Open(st.ctx, "sqlite:"+alone, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Read(st.ctx, func(tx *db.Tx) error {
		n, err := tasksStored.One(tx)
		if err == nil && n != filed {
			t.Errorf("the file alone has %d of %d tasks", n, filed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
