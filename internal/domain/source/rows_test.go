package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/inbound"
	"yardmaster/internal/policy"
)

// The ledger has the last 200 deliveries of 30 days, and no secret.
func TestLedger(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic, Repo: "acme/web"})
		key := "ghp_" + strings.Repeat("a1B2", 9)
		body := fmt.Sprintf(`{"title": "use %s", "body": "%s", "api_key": "hunter2", "secret": %q, "type": "%s"}`, key, key, *src.Secret, key)
		if got := y.post(src, body); got.Kind != Filed {
			t.Fatal(got.text)
		}
		y.write(func(tx *db.Tx) error {
			all, err := allText.All(tx)
			for _, text := range all {
				if strings.Contains(text, key) || strings.Contains(text, "hunter2") || strings.Contains(text, *src.Secret) {
					t.Errorf("a secret is kept: %s", text)
				}
			}
			return err
		})
		for _, f := range y.asks {
			if strings.Contains(f.Title+f.Body, key) {
				t.Errorf("a secret is in the ask: %s %s", f.Title, f.Body)
			}
		}
		for i := range maxLedger + 5 {
			y.wait(time.Second)
			y.post(src, fmt.Sprintf(`{"n": %d}`, i))
		}
		page := y.ledger(src.ID, 200)
		if len(page.Data) != maxLedger || page.NextCursor != nil || page.Data[0].Outcome != Dropped {
			t.Errorf("%d rows, %v", len(page.Data), page.NextCursor)
		}
		if half := y.ledger(src.ID, 50); len(half.Data) != 50 || half.NextCursor == nil {
			t.Errorf("%d rows, %v", len(half.Data), half.NextCursor)
		}
		y.write(func(tx *db.Tx) error {
			n, err := countBodies.One(tx)
			if n != maxTried {
				t.Errorf("%d bodies are kept", n)
			}
			return err
		})
		y.wait(kept + time.Second)
		if err := y.nodes[0].DB.Write(t.Context(), y.nodes[0].forget); err != nil {
			t.Fatal(err)
		}
		if page := y.ledger(src.ID, 200); len(page.Data) != 0 {
			t.Errorf("%d rows after 30 days", len(page.Data))
		}
		y.write(func(tx *db.Tx) error {
			n, err := countSeen.One(tx)
			if n != 0 {
				t.Errorf("%d hashes are kept", n)
			}
			return err
		})
	})
}

// A mapping is shown on the last deliveries, and holds once it is saved.
func TestMapping(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic, Projects: map[string]string{"db": "acme/api"}})
		for i := range 12 {
			y.wait(time.Second)
			status := []string{"firing", "resolved"}[i%2]
			body := fmt.Sprintf(`{"alert": {"name": "disk", "id": %d, "text": "a\u202eb"}, "status": "%s", "service": "db"}`, i, status)
			if got := y.post(src, body); got.Kind != Dropped || got.Reason != NoWorkSignal {
				t.Fatal(got.text)
			}
		}
		m := inbound.Mapping{
			Title: "{/alert/name} {/alert/id}", Body: "/alert/text", DedupeKey: "/alert/name", Project: "/service",
			When: &inbound.When{At: "/status", Is: []string{"firing"}},
		}
		shown, err := y.nodes[0].previewMapping(y.as("acme"), mappingIn{ID: src.ID, Mapping: m})
		if err != nil || len(shown.Data) != maxTried || len(y.asks) != 0 {
			t.Fatalf("%+v, %v, %d asks", shown, err, len(y.asks))
		}
		last, before := shown.Data[0], shown.Data[1]
		if last.Outcome != Dropped || *last.Reason != NoWorkSignal || before.Outcome != Filed || before.Title != "disk 10" ||
			before.Body != `a\u202eb` || *before.DedupeKey != "disk" || *before.Project != "db" || *before.Repo != "acme/api" {
			t.Errorf("%+v\n%+v", last, before)
		}
		if _, err := y.nodes[0].setMapping(y.as("acme"), mappingIn{ID: src.ID, Mapping: m}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []Outcome{Filed, Noop} {
			got := y.post(src, fmt.Sprintf(`{"alert": {"name": "disk", "id": %d}, "status": "firing", "service": "db"}`, 100+i))
			if got.Kind != want || got.Count != int64(i+1) {
				t.Errorf("%s", got.text)
			}
		}
		_, err = y.nodes[0].setMapping(y.as("acme"), mappingIn{ID: src.ID, Mapping: inbound.Mapping{Title: "{x"}})
		if !fault.IsKind(err, fault.Invalid) {
			t.Errorf("%v", err)
		}
	})
}

// Nobody reads or changes what is another account's, nor binds its repositories; only who
// may create tasks has work begin on what strangers deliver.
func TestRights(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src, s := y.connect(connectIn{Kind: inbound.Generic, Repo: "acme/web"}), y.nodes[0]
		rival := y.as("rival", policy.WriteTasks)
		yes, theirs := true, "rival/web"
		for name, err := range map[string]error{
			"get":        fails(s.get(rival, idIn{ID: src.ID})),
			"update":     fails(s.update(rival, updateIn{ID: src.ID, Trusted: &yes})),
			"rotate":     fails(s.rotate(rival, rotateIn{ID: src.ID})),
			"disconnect": fails(s.disconnect(rival, idIn{ID: src.ID})),
			"deliveries": fails(s.deliveries(rival, deliveriesIn{ID: src.ID})),
			"preview":    fails(s.previewMapping(rival, mappingIn{ID: src.ID})),
			"map":        fails(s.setMapping(rival, mappingIn{ID: src.ID})),
			"bind":       fails(s.update(y.as("acme"), updateIn{ID: src.ID, Repo: &theirs})),
			"connect": fails(s.connect(y.as("acme"), connectIn{Name: "n", Kind: inbound.Generic,
				Projects: map[string]string{"a": theirs}})),
		} {
			if !missing(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, err := range map[string]error{
			"connect": fails(s.connect(y.as("acme", policy.WriteWebhooks), connectIn{Name: "n", Kind: inbound.Generic, Trusted: true})),
			"update":  fails(s.update(y.as("acme", policy.WriteWebhooks), updateIn{ID: src.ID, Trusted: &yes})),
		} {
			if !fault.IsKind(err, fault.Forbidden) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := s.update(y.as("acme", policy.WriteTasks), updateIn{ID: src.ID, Trusted: &yes}); err != nil {
			t.Fatal(err)
		}
		// A trusted source cannot be taken over with less than the right that it has.
		less, no, to := y.as("acme", policy.WriteWebhooks), false, "acme/api"
		for name, err := range map[string]error{
			"rotate": fails(s.rotate(less, rotateIn{ID: src.ID})),
			"update": fails(s.update(less, updateIn{ID: src.ID, Repo: &to})),
			"map":    fails(s.setMapping(less, mappingIn{ID: src.ID, Mapping: inbound.Mapping{Title: "/x"}})),
		} {
			if !fault.IsKind(err, fault.Forbidden) {
				t.Errorf("%s: %v", name, err)
			}
		}
		defer func() {
			if _, err := s.update(less, updateIn{ID: src.ID, Trusted: &no}); err != nil {
				t.Errorf("trust cannot be taken away: %v", err)
			}
		}()
		y.post(src, `{"title": "t"}`)
		for _, f := range y.asks {
			if !f.Trusted {
				t.Errorf("%+v", f)
			}
		}
	})
}

func fails[T any](_ T, err error) error { return err }

// An account has at most 50 sources.
func TestTooMany(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		for i := range maxSources {
			y.connect(connectIn{Name: fmt.Sprint("n", i), Kind: inbound.Generic})
		}
		_, err := y.nodes[0].connect(y.as("acme"), connectIn{Name: "n", Kind: inbound.Generic})
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Slug != "too-many-sources" {
			t.Errorf("%v", err)
		}
	})
}

// Nothing of a delivery is stored if its ask cannot be filed, so that it can be sent again.
func TestNothingHalf(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic, Repo: "acme/web"})
		y.fails = errors.New("the disk is full")
		if got := y.post(src, `{"title": "t"}`); got.status != 500 || len(y.ledger(src.ID, 50).Data) != 0 {
			t.Errorf("%d %s", got.status, got.text)
		}
		y.fails = nil
		if got := y.post(src, `{"title": "t"}`); got.status != 202 {
			t.Errorf("%d %s", got.status, got.text)
		}
	})
}

// A delivery is not read before there is room for it: one that waits for others of its source
// is told so, whatever it says.
func TestGateBeforeReading(t *testing.T) {
	t.Parallel()
	var s Service
	src := row{ID: "a", Kind: inbound.Generic}
	malformed := inbound.Request{Header: func(string) string { return "" }, Body: []byte("{")}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range atOnce {
		leave, _ := s.gates.enter(src.ID, nil)
		defer leave()
	}
	if _, err := s.accept(over, src, malformed); !errors.Is(err, errBusy) {
		t.Errorf("behind others: %v", err)
	}
	src.ID = "b"
	if _, err := s.accept(over, src, malformed); err == nil || errors.Is(err, errBusy) {
		t.Errorf("alone: %v", err)
	}
}

// Few deliveries of a source are worked at, and a source that has to wait keeps no other
// one waiting.
func TestGates(t *testing.T) {
	t.Parallel()
	var g gates
	var leave []func()
	for range atOnce {
		done, ok := g.enter("a", nil)
		if !ok {
			t.Fatal("the gate is closed")
		}
		leave = append(leave, done)
	}
	over := make(chan struct{})
	close(over)
	if _, ok := g.enter("a", over); ok {
		t.Error("one more was let in")
	}
	if done, ok := g.enter("b", over); !ok {
		t.Error("another source has to wait")
	} else {
		done()
	}
	waited := make(chan bool)
	go func() {
		done, ok := g.enter("a", nil)
		if ok {
			done()
		}
		waited <- ok
	}()
	for _, done := range slices.Backward(leave) {
		done()
	}
	if !<-waited || len(g.all) != 0 {
		t.Errorf("%d gates are left", len(g.all))
	}
}
