package db_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// writeForever is the child of TestAcknowledgedWritesSurviveKill: eight writers
// that print the id of each row once its Write has returned, until killed.
func writeForever(dsn string) error {
	ctx := context.Background()
	d, err := db.Open(ctx, dsn, db.Options{})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for w := range 8 {
		go func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d-%06d", w, i)
				if err := d.Write(ctx, func(tx *db.Tx) error { return put(tx, thing{ID: id}) }); err != nil {
					failed <- err
				}
				// A single system call: a killed writer leaves at most its last
				// line incomplete.
				if _, err := os.Stdout.WriteString(id + "\n"); err != nil {
					failed <- err
				}
			}
		}()
	}
	return <-failed
}

func TestAcknowledgedWritesSurviveKill(t *testing.T) {
	dsn := dbtest.DSN(t, db.SQLite)
	d, err := db.Open(t.Context(), dsn, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	createTables(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}

	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+dsn)
	var stderr strings.Builder
	child.Stderr = &stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acked []string
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // the end of what a killed process wrote
		}
		acked = append(acked, strings.TrimSuffix(line, "\n"))
		if len(acked) == 500 {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := child.Wait(); err == nil || len(acked) < 500 {
		t.Fatalf("child ended by itself after %d rows: %v\n%s", len(acked), err, stderr.String())
	}

	d = dbtest.Open(t, dsn, db.Options{})
	kept := map[string]bool{}
	for _, id := range ids(t, d) {
		kept[id] = true
	}
	for _, id := range acked {
		if !kept[id] {
			t.Errorf("row %s was acknowledged and is lost", id)
		}
	}
}
