package ci

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/fault"
)

// Output implements Logs: the pieces of a run's output, an event each.
func (y *yard) Output(tx *db.Tx, runID string, after int64) (string, int64, error) {
	pieces := y.said[runID]
	if tx.Account != "acme" || after >= int64(len(pieces)) {
		return "", after, nil
	}
	return pieces[after], after + 1, nil
}

// unsteady is a store that fails while broken is set.
type unsteady struct {
	blob.Store
	broken error
}

func (u *unsteady) Put(ctx context.Context, key string, r io.Reader, size int64, mediaType string) error {
	if u.broken != nil {
		return u.broken
	}
	return u.Store.Put(ctx, key, r, size, mediaType)
}

func (y *yard) logURL(account, check string) (Log, error) {
	return y.Service.logURL(db.WithAccount(y.t.Context(), account), idIn{ID: check})
}

// wantNoLog fails unless the log is answered as one that there is not.
func (y *yard) wantNoLog(account, check string) {
	y.t.Helper()
	_, err := y.logURL(account, check)
	if f := fault.From(err); !fault.IsKind(err, fault.NotFound) || f.Detail != fault.Missing("log of a check").Detail {
		y.t.Errorf("%v", err)
	}
}

// pass stores and deletes the outputs that are due.
func (y *yard) pass() {
	y.t.Helper()
	duetest.Pass(y.t.Context(), y.t, y.Due)
}

// only is the one check that there is.
func (y *yard) only() (c Check) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		rows, err := Rows(tx, nil, 10)
		if len(rows) != 1 {
			y.t.Fatalf("%+v", rows)
		}
		c = rows[0]
		return err
	})
	return c
}

// objects are the keys of all objects.
func (y *yard) objects() (out []string) {
	y.t.Helper()
	err := filepath.WalkDir(y.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		y.t.Fatal(err)
	}
	return out
}

func (y *yard) fetch(address string) (int, string) {
	y.t.Helper()
	w := httptest.NewRecorder()
	y.folder.ServeHTTP(w, httptest.NewRequestWithContext(y.t.Context(), "GET", strings.TrimPrefix(address, "http://yard.example"), nil))
	return w.Code, w.Body.String()
}

// The output of a check is archived at its end, handed out for three days, and deleted.
func TestLog(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.said["r"] = []string{"make: ", "no rule\n", ""}
		task := y.queue("aaaaaaaaaaaa")
		check := y.only().ID
		y.wantNoLog("acme", check) // it has not ended
		y.finish(Outcome{TaskID: task, RunID: "r", BoxID: "b", ExitCode: &two})
		y.wantNoLog("acme", check) // it is not archived
		if c := y.only(); c.LogExpiresAt != nil || c.RunID == nil || *c.RunID != "r" {
			t.Errorf("%+v", c)
		}
		y.pass()
		l, err := y.logURL("acme", check)
		if err != nil {
			t.Fatal(err)
		}
		if code, text := y.fetch(l.URL); code != 200 || text != "make: no rule\n" || l.Size != int64(len(text)) {
			t.Errorf("%d %q %+v", code, text, l)
		}
		if c := y.only(); c.LogExpiresAt == nil || !c.LogExpiresAt.Equal(y.now().Add(Retention)) {
			t.Errorf("%+v", c)
		}
		y.wantNoLog("rival", check)
		y.wantNoLog("acme", "00000000-0000-4000-8000-000000000000")

		y.later(Retention - time.Minute)
		y.pass()
		if _, err := y.logURL("acme", check); err != nil {
			t.Error(err)
		}
		y.later(time.Minute)
		y.wantNoLog("acme", check)
		if c := y.only(); c.LogExpiresAt != nil {
			t.Errorf("%+v", c)
		}
		if len(y.objects()) != 1 {
			t.Errorf("%v", y.objects())
		}
		y.pass()
		if len(y.objects()) != 0 {
			t.Errorf("%v are left", y.objects())
		}
	})
}

// A head that is checked again shows the new output alone; both are deleted in the end.
func TestLogOfAnotherRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.said["r"], y.said["s"] = []string{"first"}, []string{"second"}
		y.finish(Outcome{TaskID: y.queue("a"), RunID: "r", ExitCode: &two})
		y.pass()
		check := y.only().ID
		task := y.queue("a")
		y.wantNoLog("acme", check)
		y.finish(Outcome{TaskID: task, RunID: "s", ExitCode: &zero})
		y.finish(Outcome{TaskID: task, RunID: "s", ExitCode: &zero})
		y.pass()
		l, err := y.logURL("acme", check)
		if err != nil {
			t.Fatal(err)
		}
		if _, text := y.fetch(l.URL); text != "second" || len(y.objects()) != 2 {
			t.Errorf("%q, %v", text, y.objects())
		}
		y.later(Retention)
		y.pass()
		if len(y.objects()) != 0 {
			t.Errorf("%v are left", y.objects())
		}
	})
}

// A store that fails is tried again, later each time, until the time of the log is over.
func TestLogIsTriedAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.said["r"] = []string{"text"}
		y.store.broken = errors.New("the bucket is away")
		y.finish(Outcome{TaskID: y.queue("a"), RunID: "r", ExitCode: &two})
		check := y.only().ID
		y.pass()
		y.store.broken = nil
		y.pass()
		y.wantNoLog("acme", check) // not at once
		y.later(25 * time.Second)
		y.pass()
		if _, err := y.logURL("acme", check); err != nil {
			t.Error(err)
		}

		y.said["s"] = []string{"text"}
		y.store.broken = errors.New("the bucket is away")
		y.finish(Outcome{TaskID: y.queue("a"), RunID: "s", ExitCode: &two})
		for range 80 {
			y.pass()
			y.later(time.Hour)
		}
		y.pass()
		y.store.broken = nil
		y.pass()
		y.wantNoLog("acme", check)
		if len(y.objects()) != 0 {
			t.Errorf("%v", y.objects())
		}
	})
}

// An output that is too long is cut, and says so.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for range 9 {
			y.said["r"] = append(y.said["r"], strings.Repeat("é", 1<<20))
		}
		y.finish(Outcome{TaskID: y.queue("a"), RunID: "r", ExitCode: &zero})
		y.pass()
		l, err := y.logURL("acme", y.only().ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, text := y.fetch(l.URL); len(text) > mostLog || len(text) < mostLog-10 || !strings.HasSuffix(text, "é"+logCut) {
			t.Errorf("%d bytes, %q", len(text), text[len(text)-40:])
		}
	})
}

// Without storage there is no log, and nothing is left to do.
func TestNoStorage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.store.Store = blob.Off{}
		y.finish(Outcome{TaskID: y.queue("a"), RunID: "r", ExitCode: &zero})
		y.pass()
		y.wantNoLog("acme", y.only().ID)
		y.write(func(tx *db.Tx) error {
			n, err := logs.One(tx)
			if n != 0 {
				t.Errorf("%d logs wait", n)
			}
			return err
		})
	})
}

var logs = db.Q[int64](`SELECT COUNT(*) FROM ci_logs`)

// A clock that is set back does not prolong the life of a log.
func TestLogAfterTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.finish(Outcome{TaskID: y.queue("a"), RunID: "r", ExitCode: &zero})
		y.pass()
		y.later(-30 * 24 * time.Hour)
		y.write(ClockSetBack)
		y.pass() // begins the wait anew
		y.later(Retention)
		y.pass()
		if len(y.objects()) != 0 {
			t.Errorf("%v are left", y.objects())
		}
	})
}
