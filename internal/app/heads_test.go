package app

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/event/notary"
)

var (
	cutRows  = db.S(`DELETE FROM audit WHERE account_id = $1 AND seq > $2 + 0`)
	headBack = db.S(`UPDATE audit_heads SET seq = $2, hash = (SELECT hash FROM audit WHERE account_id = $1 AND seq = $2)
		WHERE account_id = $1`)
	headSeq = db.Q[int64](`SELECT seq FROM audit_heads WHERE account_id = $1`)
	putRow  = db.SWith[putRowArgs](`UPDATE audit SET data = :data, prev_hash = :prev_hash, hash = :hash
		WHERE account_id = :account_id AND seq = :seq`)
)

// putRowArgs are the parameters of putRow.
type putRowArgs struct {
	AccountID            string
	Seq                  int
	Data, PrevHash, Hash string
}

// book is what is noted of the yard's record, as whoever has the public key
// reads it.
func (y *yard) book() *hashchain.Book {
	y.t.Helper()
	text, err := os.ReadFile(y.cfg.HeadsFile)
	if err != nil {
		y.t.Fatal(err)
	}
	b, err := hashchain.ReadBook(bytes.NewReader(text), notary.Signers(y.ring)[0].Public().(ed25519.PublicKey))
	if err != nil {
		y.t.Fatal(err)
	}
	return b
}

// breaks are those that are noted, as "account seq".
func (y *yard) breaks() (out []string) {
	y.t.Helper()
	for _, n := range y.book().Notes() {
		if n.Type == hashchain.NoteBreak {
			out = append(out, fmt.Sprint(n.Account, " ", n.Seq))
		}
	}
	return out
}

// against is what `audit verify --head` says of the account's export.
func (y *yard) against() (missing, passed []string) {
	y.t.Helper()
	_, missing, passed, err := hashchain.VerifyAgainst(strings.NewReader(strings.Join(y.exported(), "\n")), y.book())
	if err != nil {
		y.t.Fatal(err)
	}
	return missing, passed
}

// write a few rows to the record of the account.
func (y *yard) busy(n int) {
	y.t.Helper()
	for i := range n {
		y.send("PUT", fmt.Sprintf("/v1/templates/t%d", i), y.owner, `{"agent": "builtin", "model": "m"}`).want(200)
	}
}

func (y *yard) seq() (seq int64) {
	y.t.Helper()
	y.in(y.acct, func(tx *db.Tx) (err error) {
		seq, err = headSeq.One(tx, y.acct)
		return err
	})
	return seq
}

// again starts the server of y once more.
func (y *yard) again(e db.Engine, flags []string) *yard {
	y.t.Helper()
	next := boot(y.t, e, flags...)
	next.owner, next.acct, next.user = y.owner, y.acct, y.user
	return next
}

// noticed holds that the export is whole by itself, and that the server has named
// the break in the account's chain behind the row that was noted last.
func (y *yard) noticed(noted int64) {
	y.t.Helper()
	if spans, err := hashchain.Verify(strings.NewReader(strings.Join(y.exported(), "\n"))); err != nil || len(spans) != 1 {
		y.t.Fatalf("the export alone: %+v, %v", spans, err)
	}
	if got, want := y.breaks(), fmt.Sprint(y.acct, " ", noted); !slices.Equal(got, []string{want}) {
		y.t.Errorf("at start %q are named, not %s", got, want)
	}
}

// behind changes the database of a stopped server, as its operator can.
func behind(t *testing.T, dsn string, fn func(tx *db.Tx) error) {
	t.Helper()
	d, err := db.Open(t.Context(), dsn, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

// onBoth plays fn on both databases, with the flags of a server that has a folder
// and a database of its own.
func onBoth(t *testing.T, fn func(t *testing.T, e db.Engine, flags []string)) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			fn(t, e, []string{"--data", t.TempDir(), "--database", dbtest.DSN(t, e)})
		})
	}
}

// The newest rows are deleted and the head is set back with two statements of
// SQL. The export is whole by itself; the server names the account when it
// starts, and the export is not what the signed heads say.
func TestNewestRowsCutOff(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		y.busy(9)
		y.stop()
		y = y.again(e, flags)
		if missing, passed := y.against(); missing != nil || passed != nil || y.breaks() != nil {
			t.Fatalf("before: %q, %q, %q", missing, passed, y.breaks())
		}
		noted := y.seq()
		y.stop()
		behind(t, flags[3], func(tx *db.Tx) error {
			if _, err := cutRows.Exec(tx, y.acct, noted-7); err != nil {
				return err
			}
			_, err := headBack.Exec(tx, y.acct, noted-7)
			return err
		})
		y = y.again(e, flags)
		y.noticed(noted)
		missing, _ := y.against()
		if len(missing) != 1 || !strings.HasPrefix(missing[0],
			fmt.Sprintf("%s: the newest row has the number %d, but %d was noted at ", y.acct, noted-7, noted)) {
			t.Errorf("the export against the heads: %q", missing)
		}
		y.busy(9) // and what is written since does not hide it
		y.stop()
		y = y.again(e, flags)
		if missing, _ := y.against(); len(missing) != 1 ||
			!strings.Contains(missing[0], fmt.Sprintf("row number %d is not the one that was noted", noted)) {
			t.Errorf("later: %q", missing)
		}
		if got := y.breaks(); len(got) != 2 {
			t.Errorf("later %q are named", got)
		}
	})
}

// A row is changed and every hash behind it made anew: no check of the chain
// sees it, and the noted heads do.
func TestRowRewritten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		y.busy(3)
		y.stop()
		y = y.again(e, flags)
		y.busy(3)
		noted := y.seq()
		rows := y.exported()
		slices.Reverse(rows)
		y.stop()
		behind(t, flags[3], func(tx *db.Tx) error {
			prev := ""
			for i, text := range rows {
				var row map[string]jsontext.Value
				if err := json.Unmarshal([]byte(text), &row); err != nil {
					return err
				}
				if i == 2 {
					row["data"] = jsontext.Value(`{"nothing":"happened"}`)
				}
				row["prev_hash"] = jsontext.Value(fmt.Sprintf("%q", prev))
				changed, err := json.Marshal(row)
				if err != nil {
					return err
				}
				hash, err := hashchain.Hash(changed)
				if err != nil {
					return err
				}
				if _, err := putRow.Exec(tx, putRowArgs{
					AccountID: y.acct, Seq: i + 1, Data: string(row["data"]), PrevHash: prev, Hash: hash,
				}); err != nil {
					return err
				}
				prev = hash
			}
			_, err := headBack.Exec(tx, y.acct, noted)
			return err
		})
		y = y.again(e, flags)
		y.noticed(noted)
		if missing, _ := y.against(); len(missing) != 1 || !strings.Contains(missing[0], "it or a row before it was changed") {
			t.Errorf("the export against the heads: %q", missing)
		}
	})
}

// An older copy of the database is put back. The server says so, and goes on;
// once somebody has said why, on the record, it is no alarm any more.
func TestOlderBackupPutBack(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	file := filepath.Join(t.TempDir(), "server.db")
	flags := []string{"--data", data, "--database", "sqlite:" + file}
	y := start(t, db.SQLite, flags...)
	y.busy(3)
	y.stop()
	copied := map[string][]byte{}
	for _, name := range []string{file, file + "-wal"} {
		b, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		copied[name] = b
	}
	y = y.again(db.SQLite, flags)
	y.busy(5)
	noted := y.seq()
	y.stop()
	for _, old := range []string{file, file + "-wal", file + "-shm"} {
		os.Remove(old)
	}
	for name, b := range copied {
		write(t, name, string(b))
	}
	y = y.again(db.SQLite, flags)
	if got, want := y.breaks(), fmt.Sprint(y.acct, " ", noted); !slices.Equal(got, []string{want}) {
		t.Errorf("at start %q are named, not %s", got, want)
	}
	if missing, _ := y.against(); len(missing) != 1 || !strings.Contains(missing[0], "an older state was put back") ||
		!strings.Contains(missing[0], "up to number ") {
		t.Errorf("the export against the heads: %q", missing)
	}
	if _, err := OpenKeys(t.Context(), y.cfg, true); err == nil {
		t.Error("a break is accepted beside a server")
	}
	y.stop()
	k, err := OpenKeys(t.Context(), y.cfg, true)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := k.AcceptBreaks(t.Context(), "the disk died, and we had Monday's copy", &said); err != nil ||
		!strings.Contains(said.String(), y.acct+": the newest row") {
		t.Errorf("accepting: %s, %v", said.String(), err)
	}
	if err := k.AcceptBreaks(t.Context(), "again", &said); err == nil || !strings.Contains(err.Error(), "nothing to accept") {
		t.Errorf("accepting nothing: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	y = y.again(db.SQLite, flags)
	if got := y.breaks(); len(got) != 1 {
		t.Errorf("after it was accepted %q are named", got)
	}
	missing, passed := y.against()
	if missing != nil || len(passed) != 1 || !strings.Contains(passed[0], "the disk died, and we had Monday's copy") {
		t.Errorf("the export against the heads: %q, %q", missing, passed)
	}
	if rows := strings.Join(y.exported(), "\n"); !strings.Contains(rows, `"kind":"audit_break.accepted"`) ||
		!strings.Contains(rows, "the disk died") {
		t.Errorf("the account does not see it:\n%s", rows)
	}
}
