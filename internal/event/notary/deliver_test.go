package notary

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/seal"
)

// timed is onBoth with a clock that the test sets.
func timed(t *testing.T, fn func(t *testing.T, o *office, pass func(time.Duration))) {
	var now atomic.Int64
	now.Store(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixMicro())
	clock := func() time.Time { return time.UnixMicro(now.Load()) }
	dbtest.RunWith(t, db.Options{Clock: clock}, func(t *testing.T, d *db.DB) {
		fn(t, &office{t: t, d: d, ring: seal.New(), path: filepath.Join(t.TempDir(), "heads.jsonl")},
			func(by time.Duration) { now.Add(by.Microseconds()) })
	})
}

// TestWhenHeadsAreNoted holds that heads are noted after the interval, or after
// many new rows, and only those that have changed.
func TestWhenHeadsAreNoted(t *testing.T) {
	timed(t, func(t *testing.T, o *office, pass func(time.Duration)) {
		o.record("a", "b")
		n, _ := o.open()
		noted := func() (out int) {
			if err := n.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, note := range o.book(o.ring).Notes() {
				if note.Type == hashchain.NoteHead {
					out++
				}
			}
			return out
		}
		o.record("a")
		pass(59 * time.Minute)
		if got := noted(); got != 2 {
			t.Errorf("before it is time there are %d", got)
		}
		pass(time.Minute)
		if got := noted(); got != 3 {
			t.Errorf("after an hour there are %d", got)
		}
		pass(time.Hour)
		if got := noted(); got != 3 {
			t.Errorf("nothing has moved, and there are %d", got)
		}
		add := func(rows int) {
			o.write(func(tx *db.Tx) error {
				for range rows {
					if err := thingDone.Record(tx, event.Subject{ID: "x", Account: "b"}, event.None{}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		add(growth - 1)
		if got := noted(); got != 3 {
			t.Errorf("after %d rows there are %d", growth-1, got)
		}
		add(1)
		if got := noted(); got != 4 {
			t.Errorf("after %d rows there are %d", growth, got)
		}
	})
}

// TestWebhook holds that notes reach the webhook, also after it was unreachable for
// a while and again after a start, and that each note proves itself.
func TestWebhook(t *testing.T) {
	onBoth(t, func(t *testing.T, o *office) {
		var got []hashchain.Note
		away := true
		hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if away {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			body, err := io.ReadAll(r.Body)
			var in struct{ Notes []json.RawMessage }
			if err == nil {
				err = json.Unmarshal(body, &in)
			}
			var lines bytes.Buffer
			for _, raw := range in.Notes {
				lines.Write(append(raw, '\n'))
			}
			key, _ := hashchain.ParsePublicKey(hashchain.PublicKey(Signers(o.ring)[0]))
			b, err2 := hashchain.ReadBook(&lines, key)
			b.Check()
			if err != nil || err2 != nil || len(b.Bad) > 0 || r.Method != http.MethodPost ||
				r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %v: %v, %v, %q", r.Method, r.Header, err, err2, body)
				return
			}
			got = append(got, b.Notes()...)
		}))
		defer hook.Close()
		o.record("a", "a", "a", "b")
		n, _ := o.open()
		n.Hook = hook.URL
		n.deliver(t.Context())
		o.record("b")
		if err := n.note(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		o.exec(cut, "a", 2)
		o.exec(setBack, "a", 2)
		if err := n.note(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		n.deliver(t.Context())
		away = false
		n.deliver(t.Context())
		if len(got) != 3 || got[0].Type != hashchain.NoteBreak || got[0].Account != "a" || got[0].Seq != 3 ||
			got[1].Account != "a" || got[1].Seq != 2 || !got[1].AfterBreak || got[2].Account != "b" || got[2].Seq != 2 {
			t.Errorf("after it was away it is told %+v", got)
		}
		got = nil
		n.deliver(t.Context())
		if len(got) != 0 {
			t.Errorf("it is told again of %+v", got)
		}
		n, _ = o.open()
		n.Hook = hook.URL
		n.deliver(t.Context())
		if len(got) != 3 {
			t.Errorf("after a start it is told %+v", got)
		}
	})
}

// TestMails holds that of several servers one mails the new notes in each interval,
// that none leaves out notes that it has not mailed, and that a break is mailed at
// once.
func TestMails(t *testing.T) {
	timed(t, func(t *testing.T, o *office, pass func(time.Duration)) {
		var subjects, texts []string
		folder := t.TempDir()
		server := func(name string) *Notary {
			o.path = filepath.Join(folder, name)
			n, _ := o.open()
			n.MailTo = "audit@example.com"
			n.Post = func(_ *db.Tx, to, subject, text string) error {
				if to != n.MailTo {
					t.Errorf("mailed to %s", to)
				}
				subjects, texts = append(subjects, subject), append(texts, text)
				return nil
			}
			return n
		}
		o.record("a", "b")
		one, two := server("one"), server("two")
		both := func() {
			t.Helper()
			for _, n := range []*Notary{one, two} {
				if err := n.note(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				n.deliver(t.Context())
			}
		}
		both()
		if len(texts) != 1 || strings.Count(texts[0], `"type":"head"`) != 2 || !strings.HasPrefix(subjects[0], "Audit heads of 2027-01-1") {
			t.Fatalf("%q\n%q", subjects, texts)
		}
		o.record("a")
		pass(10 * time.Minute)
		both()
		if len(texts) != 1 {
			t.Errorf("before it is time: %q", texts[1:])
		}
		pass(time.Hour)
		both()
		if len(texts) != 2 || !strings.Contains(texts[1], `"account":"a","seq":2`) {
			t.Errorf("after an hour: %q", texts[1:])
		}
		o.exec(cut, "a", 1)
		o.exec(setBack, "a", 1)
		both()
		if len(texts) != 4 || subjects[2] != "Audit chains are broken: 1" ||
			!strings.Contains(texts[3], `"type":"break","account":"a","seq":2`) {
			t.Errorf("at a break: %q\n%q", subjects[2:], texts[2:])
		}
	})
}
