package notary

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { dbtest.Declared(t) }

var (
	cut     = db.S(`DELETE FROM audit WHERE account_id = $1 AND seq > $2 + 0`)
	setBack = db.S(`UPDATE audit_heads SET seq = $2, hash = (SELECT hash FROM audit WHERE account_id = $1 AND seq = $2)
		WHERE account_id = $1`)
	rehash  = db.S(`UPDATE audit SET hash = 'other' || hash WHERE account_id = $1 AND seq >= $2`)
	rehead  = db.S(`UPDATE audit_heads SET hash = 'other' || hash WHERE account_id = $1`)
	kindsOf = db.Q[string](`SELECT kind FROM audit WHERE account_id = $1 ORDER BY seq`)
)

// office is a database whose chains are noted in a file.
type office struct {
	t    *testing.T
	d    *db.DB
	ring *seal.Keyring
	path string
	max  int

	mu   sync.Mutex
	logs bytes.Buffer
}

func (o *office) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.logs.Write(p)
}

// logged returns the lines of a level that were logged since its last call.
func (o *office) logged(level string) (out []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(o.logs.String()) {
		if strings.Contains(line, "level="+level) {
			out = append(out, line)
		}
	}
	o.logs.Reset()
	return out
}

func onBoth(t *testing.T, fn func(*testing.T, *office)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		fn(t, &office{t: t, d: d, ring: seal.New(), path: filepath.Join(t.TempDir(), "heads.jsonl")})
	})
}

// record adds rows to the chains of accounts; "" is the platform's.
func (o *office) record(accounts ...string) {
	o.t.Helper()
	for _, a := range accounts {
		o.write(func(tx *db.Tx) error {
			return thingDone.Record(tx, event.Subject{ID: "x", Account: a}, event.None{})
		})
	}
}

func (o *office) write(fn func(tx *db.Tx) error) {
	o.t.Helper()
	if err := o.d.Write(o.t.Context(), fn); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) exec(s db.Stmt, args ...any) {
	o.t.Helper()
	o.write(func(tx *db.Tx) error {
		_, err := s.Exec(tx, args...)
		return err
	})
}

// open starts a notary, as a server does.
func (o *office) open() (*Notary, []Break) {
	o.t.Helper()
	n := &Notary{DB: o.d, Ring: o.ring, Path: o.path, Every: time.Hour, Max: o.max, Logger: slog.New(slog.NewTextHandler(o, nil))}
	breaks, err := n.Start(context.Background())
	if err != nil {
		o.t.Fatal(err)
	}
	return n, breaks
}

// sound starts and stops a notary that must find nothing.
func (o *office) sound() {
	o.t.Helper()
	n, breaks := o.open()
	n.proofread(context.Background())
	if err := n.Close(context.Background()); err != nil {
		o.t.Fatal(err)
	}
	if said := o.logged("ERROR"); len(breaks) > 0 || len(said) > 0 {
		o.t.Fatalf("a false alarm: %+v\n%s", breaks, said)
	}
}

// broken holds that Start and the log name one account's chain.
func (o *office) broken(account string, seq int64, why ...string) {
	o.t.Helper()
	n, breaks := o.open()
	n.proofread(context.Background())
	if len(breaks) != 1 || breaks[0].Account != account || breaks[0].Note.Seq != seq {
		o.t.Fatalf("it finds %+v", breaks)
	}
	said := strings.Join(o.logged("ERROR"), "")
	for _, w := range append(why, "account="+account, fmt.Sprintf("seq=%d", seq), "noted="+breaks[0].Note.Time) {
		if !strings.Contains(said, w) {
			o.t.Errorf("no %q in the log:\n%s", w, said)
		}
	}
}

func (o *office) book(trusted ...*seal.Keyring) *hashchain.Book {
	o.t.Helper()
	text, err := os.ReadFile(o.path)
	if err != nil {
		o.t.Fatal(err)
	}
	f := file{path: o.path}
	for _, r := range trusted {
		k, err := hashchain.ParsePublicKey(hashchain.PublicKey(Signers(r)[0]))
		if err != nil {
			o.t.Fatal(err)
		}
		f.trusted = append(f.trusted, k)
	}
	b, err := hashchain.ReadBook(bytes.NewReader(text), f.trusted...)
	if err != nil {
		o.t.Fatal(err)
	}
	b.Check()
	return b
}

// TestTampering holds that every start names an account, and no other, whose newest rows
// an operator with the database has deleted and whose head he has set back, whose rows
// he has changed and computed again, or whose head alone he has set back.
func TestTampering(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		o.record("a", "b", "", "c", "d")
		o.sound()
		o.record("a", "a", "b", "c", "", "d", "d")
		o.sound()

		o.exec(cut, "a", 1)
		o.exec(setBack, "a", 1)
		o.broken("a", 3, "number 1, but 3 was noted", "up to number 1, noted at", "older state was put back")
		o.record("a", "a", "a", "a") // it goes on, beyond what was noted
		o.broken("a", 3, "row number 3 is not the one", "up to number 1")
		o.broken("a", 3)
		o.accept("a", "a test")

		o.exec(rehash, "b", 2)
		o.exec(rehead, "b")
		o.broken("b", 2, "row number 2 is not the one that was noted", "up to number 1")
		o.accept("b", "a test")
		o.exec(rehash, "c", 1)
		o.exec(rehead, "c")
		o.broken("c", 2, "row number 2 is not the one that was noted")
		o.accept("c", "a test")
		o.sound()

		// While the server runs; and a second time after the first.
		n, _ := o.open()
		o.exec(cut, "d", 2)
		o.exec(setBack, "d", 2)
		for range 2 {
			if err := n.note(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(o.logged("ERROR"), ""); !strings.Contains(said, "account=d") || !strings.Contains(said, "3 was noted") {
				t.Errorf("while it runs: %s", said)
			}
			o.record("d", "d")
		}
		var last hashchain.Note
		for _, note := range o.book(o.ring).Notes() {
			if note.Account == "d" {
				last = note
			}
		}
		if !last.AfterBreak || last.Seq != 4 {
			t.Errorf("behind a break that nobody accepted is noted %+v", last)
		}
		o.broken("d", 3)
		o.exec(setBack, "d", 1)
		o.broken("d", 3)
	})
}

func (o *office) accept(account, reason string) {
	o.t.Helper()
	n := &Notary{DB: o.d, Ring: o.ring, Path: o.path, Every: time.Hour, Max: o.max, Logger: slog.New(slog.DiscardHandler)}
	breaks, err := n.Accept(o.t.Context(), reason)
	if err != nil || len(breaks) != 1 || breaks[0].Account != account {
		o.t.Fatalf("accepted %+v, %v", breaks, err)
	}
	var kinds []string
	o.write(func(tx *db.Tx) (err error) {
		kinds, err = kindsOf.All(tx, account)
		return err
	})
	if kinds[len(kinds)-1] != "audit_break.accepted" {
		o.t.Errorf("on the record of %s is %q", account, kinds)
	}
	o.sound()
	if again, err := n.Accept(o.t.Context(), reason); err != nil || again != nil {
		o.t.Errorf("again: %+v, %v", again, err)
	}
}

// TestHeadSetBack holds that a break is found if only the row of the head is set back:
// no row is missing, and the next one would be written beside the chain.
func TestHeadSetBack(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		o.record("a", "a")
		o.sound()
		o.exec(setBack, "a", 1)
		_, _ = o.open()
		if said := strings.Join(o.logged("ERROR"), ""); !strings.Contains(said, "the head was set back to 1 from 2") {
			t.Errorf("it says %s", said)
		}
	})
}

// TestForgedNotes holds that notes count only if signed with the master key's own
// key: a head that fits a changed chain, an acceptance and a key all count for
// nothing otherwise.
func TestForgedNotes(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		o.record("a", "a", "a")
		o.sound()
		whole, err := os.ReadFile(o.path)
		if err != nil {
			t.Fatal(err)
		}
		o.exec(cut, "a", 1)
		o.exec(setBack, "a", 1)
		var now head
		o.write(func(tx *db.Tx) error {
			all, err := heads.All(tx)
			now = all[0]
			return err
		})
		forger := Signers(seal.New())[0]
		line := func(n hashchain.Note) string {
			n.Seq, n.Hash = now.Seq, now.Hash
			_, b, err := hashchain.Sign(forger, time.Unix(1_800_000_000, 0), n)
			if err != nil {
				t.Fatal(err)
			}
			return string(b) + "\n"
		}
		mine := o.book(o.ring).Notes()
		lines := bytes.Split(bytes.TrimSpace(whole), []byte("\n"))
		real := string(lines[len(lines)-1])
		for name, text := range map[string]string{
			"a head":        line(hashchain.Note{Type: hashchain.NoteHead, Account: "a"}),
			"an acceptance": line(hashchain.Note{Type: hashchain.NoteAccept, Account: "a", Reason: "it is fine"}),
			"a key": line(hashchain.Note{Type: hashchain.NoteKey, PublicKey: hashchain.PublicKey(forger)}) +
				line(hashchain.Note{Type: hashchain.NoteAccept, Account: "a"}),
			"a signature of another": strings.Replace(line(hashchain.Note{Type: hashchain.NoteAccept, Account: "a"}),
				`"key":"`+hashchain.KeyID(forger.Public().(ed25519.PublicKey)), `"key":"`+mine[0].Key, 1),
			"our note, with a change": strings.Replace(real, `"seq":3`, `"seq":1`, 1) + "\n",
			"our note, renamed":       strings.Replace(real, `"head"`, `"accept"`, 1) + "\n",
			"no note":                 "{}\nnothing\n",
		} {
			if err := os.WriteFile(o.path, append(slices.Clone(whole), text...), 0o600); err != nil {
				t.Fatal(err)
			}
			o.broken("a", 3, "the file of audit heads holds what this server has not written", "line ")
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

// TestKilled holds that the changes that a killed server has not noted, and an
// incomplete last line, are no break, and that later notes are complete.
func TestKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		o.record("a", "b")
		o.open()
		o.record("a", "a", "b") // and killed
		o.sound()
		text, err := os.ReadFile(o.path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		last := len(lines[len(lines)-1])
		for _, n := range []int{1, last / 2, last} { // in the middle of the last line
			if err := os.WriteFile(o.path, text[:len(text)-n], 0o600); err != nil {
				t.Fatal(err)
			}
			o.record("a")
			o.sound()
			if b := o.book(o.ring); len(b.Bad) > 0 || len(b.Notes()) < len(lines) {
				t.Errorf("cut by %d: %q, %d notes", n, b.Bad, len(b.Notes()))
			}
		}
	})
}

// TestFileIsBounded holds that older notes are removed from a full file, and that
// the notes for comparison stay.
func TestFileIsBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		o.max = 8 << 10
		accounts := []string{"", "a", "b"}
		o.record(accounts...)
		for range 30 {
			o.record(accounts...)
			o.sound()
			if info, err := os.Stat(o.path); err != nil || info.Size() > int64(o.max) || info.Mode().Perm() != 0o600 {
				t.Fatalf("%d bytes, mode %v, %v", info.Size(), info.Mode(), err)
			}
		}
		o.record(slices.Repeat([]string{"b"}, 10)...)
		o.sound()
		for range 30 { // of which those of b have no part
			o.record("a")
			o.sound()
		}
		o.exec(cut, "b", 35)
		o.exec(setBack, "b", 35)
		o.broken("b", 41, "but 41 was noted")
		for range 30 {
			o.record("a", "b")
			n, breaks := o.open()
			if len(breaks) != 1 || n.Close(t.Context()) != nil {
				t.Fatalf("the break is forgotten: %+v", breaks)
			}
		}
		if names, err := filepath.Glob(filepath.Join(filepath.Dir(o.path), "*")); err != nil || len(names) != 1 {
			t.Errorf("beside the file lies %q", names)
		}
	})
}

// TestNotesOutliveTheirKeys holds that the signatures of an older master key stay
// valid after its removal, over any number of keys, also for a reader who trusts
// only the newest.
func TestNotesOutliveTheirKeys(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		o.record("a", "a")
		o.sound()
		first := o.ring
		for range 3 {
			both, err := seal.New().Before(o.ring)
			if err != nil {
				t.Fatal(err)
			}
			old := o.ring.ID()
			o.ring = both
			n := &Notary{DB: o.d, Ring: both, Path: o.path, Logger: slog.New(slog.DiscardHandler)}
			if err := n.Introduce(t.Context()); err != nil {
				t.Fatal(err)
			}
			o.ring = both.Without(old)
			o.sound()
		}
		b := o.book(o.ring)
		if len(b.Bad) > 0 || b.Notes()[1].Type != hashchain.NoteHead || b.Notes()[1].Key != b.Notes()[0].Key {
			t.Errorf("notes %+v, bad %q", b.Notes(), b.Bad)
		}
		if b := o.book(first); len(b.Bad) == 0 {
			t.Error("an old key vouches for newer ones")
		}
		o.exec(cut, "a", 1)
		o.exec(setBack, "a", 1)
		o.broken("a", 2)
		_, late, err := hashchain.Sign(Signers(first)[0], time.Unix(1_800_000_000, 0),
			hashchain.Note{Type: hashchain.NoteAccept, Account: "a", Reason: "found an old key"})
		if err != nil {
			t.Fatal(err)
		}
		if err := (file{path: o.path, max: maxSize}).add([][]byte{late}); err != nil {
			t.Fatal(err)
		}
		o.broken("a", 2, "another one had taken the place of")
		o.ring = seal.New() // nothing that was noted is signed with it
		n, breaks := o.open()
		n.proofread(t.Context())
		if said := o.logged("ERROR"); len(breaks) != 0 || len(said) < 5 {
			t.Errorf("with another master key: %+v, %q", breaks, said)
		}
	})
}

// TestFileIsGone holds that a missing file is reported if there was something to
// note.
func TestFileIsGone(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		o.sound()
		if said := o.logged("WARN"); len(said) != 0 {
			t.Errorf("of an empty database: %q", said)
		}
		o.record("a")
		o.sound()
		if err := os.Remove(o.path); err != nil {
			t.Fatal(err)
		}
		o.logged("WARN")
		o.open()
		if said := o.logged("WARN"); len(said) != 1 || !strings.Contains(said[0], "there was no file of audit heads") {
			t.Errorf("it says %q", said)
		}
		o.path = filepath.Join(o.path, "below")
		n := &Notary{DB: o.d, Ring: o.ring, Path: o.path, Every: time.Hour, Logger: slog.New(slog.DiscardHandler)}
		if _, err := n.Start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "audit-heads-file: ") {
			t.Errorf("a file that cannot be: %v", err)
		}
	})
}

// TestNotesAreLogged holds that every note is in the log, with all that proves it.
func TestNotesAreLogged(t *testing.T) {
	o := &office{t: t, d: dbtest.SQLite(t), ring: seal.New(), path: filepath.Join(t.TempDir(), "heads.jsonl")}
	o.record("a")
	n := &Notary{DB: o.d, Ring: o.ring, Path: o.path, Every: time.Hour, Logger: slog.New(slog.NewJSONHandler(o, nil))}
	if _, err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := o.book(o.ring).Notes()[1]
	for line := range strings.Lines(o.logs.String()) {
		if !strings.Contains(line, `"msg":"audit head"`) {
			continue
		}
		text := strings.Replace(line, `"time":`, `"logged":`, 1)
		got := hashchain.Note{Type: want.Type}
		if err := json.Unmarshal([]byte(strings.Replace(text, `"noted":`, `"time":`, 1)), &got); err != nil || got != want {
			t.Errorf("logged %s, noted %+v: %v", line, want, err)
		}
		return
	}
	t.Errorf("no head in %s", o.logs.String())
}

// TestFileAwayForAWhile holds that a file that cannot be written for a while stops
// nothing, and that no note is missing afterwards.
func TestFileAwayForAWhile(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		o.record("a", "a")
		n, _ := o.open()
		whole := n.file
		n.file.path = t.TempDir() // which is no file
		o.record("b")
		o.exec(cut, "a", 1)
		o.exec(setBack, "a", 1)
		for range 2 {
			if err := n.note(t.Context(), nil); err == nil {
				t.Fatal("a folder takes notes")
			}
		}
		n.file = whole
		if err := n.note(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, note := range o.book(o.ring).Notes()[2:] {
			kinds = append(kinds, note.Type+" "+note.Account)
		}
		if !slices.Equal(kinds, []string{"head a", "head b", "break a"}) {
			t.Errorf("noted afterwards: %q", kinds)
		}
	})
}

var thingDone = event.Declare[event.None]("thing.done", event.Audience(policy.ReadTasks), "A thing was done.")
