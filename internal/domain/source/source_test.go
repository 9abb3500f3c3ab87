package source

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/inbound"
)

var (
	countSeen   = db.Q[int64](`SELECT COUNT(*) FROM source_seen`)
	countBodies = db.Q[int64](`SELECT COUNT(*) FROM source_deliveries WHERE body IS NOT NULL`)
	allText     = db.Q[string](`SELECT event || title || project || COALESCE(reason, '') || COALESCE(body, '') FROM source_deliveries`)
	sealedOf    = db.Q[string](`SELECT sealed FROM sources WHERE id = $1`)
)

// Whatever is not signed, is stale, broken off, too large or no JSON files nothing, and
// what is not signed learns nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic, Repo: "acme/web"})
		awaiting := y.connect(connectIn{Kind: inbound.Sentry, Repo: "acme/web"})
		gone := y.connect(connectIn{Kind: inbound.Generic, Name: "gone", Repo: "acme/web"})
		if _, err := y.nodes[0].disconnect(y.as("acme"), idIn{ID: gone.ID}); err != nil {
			t.Fatal(err)
		}
		const body = `{"title": "t"}`
		good, now := *src.Secret, y.clock()
		large := `{"title": "t", "x": "` + strings.Repeat("a", maxBody) + `"}`
		deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
		with := func(h map[string]string, name, value string) map[string]string { h[name] = value; return h }
		for name, c := range map[string]struct {
			sending
			want int
		}{
			"no signature":   {sending{source: src.ID, body: body}, 401},
			"another secret": {sending{source: src.ID, body: body, headers: signed("x", now, body)}, 401},
			"another body":   {sending{source: src.ID, body: body + " ", headers: signed(good, now, body)}, 401},
			"broken off": {sending{source: src.ID, body: body[:5], length: int64(len(body)), headers: signed(good, now, body)},
				401},
			"stale": {sending{source: src.ID, body: body, headers: signed(good, now.Add(-5*time.Minute-time.Second), body)},
				401},
			"of tomorrow": {sending{source: src.ID, body: body, headers: signed(good, now.Add(24*time.Hour), body)}, 401},
			"no such source": {sending{source: "0199d3a4-5b6c-7d8e-9f01-23456789abcd", body: body, headers: signed(good, now, body)},
				401},
			"no id":             {sending{source: "x' OR 1=1", body: body, headers: signed(good, now, body)}, 401},
			"disconnected":      {sending{source: gone.ID, body: body, headers: signed(*gone.Secret, now, body)}, 401},
			"of another source": {sending{source: src.ID, body: body, headers: signed(*gone.Secret, now, body)}, 401},
			"without a secret": {sending{source: awaiting.ID, body: body,
				headers: map[string]string{"Sentry-Hook-Signature": mac("", body)}},
				401},
			"a byte too large":   {sending{source: src.ID, body: large, headers: signed(good, now, large)}, 413},
			"of no length":       {sending{source: src.ID, body: large, length: -1, headers: signed(good, now, large)}, 413},
			"large and unsigned": {sending{source: "x", body: large, length: -1}, 413},
			"said to be large":   {sending{source: src.ID, body: body, length: maxBody + 1, headers: signed(good, now, body)}, 413},
			"compressed": {sending{source: src.ID, body: body, headers: with(signed(good, now, body), "Content-Encoding", "gzip")},
				415},
			"a form": {sending{source: src.ID, body: body, media: "application/x-www-form-urlencoded", headers: signed(good, now, body)},
				415},
			"deep":    {sending{source: src.ID, body: deep, headers: signed(good, now, deep)}, 400},
			"a list":  {sending{source: src.ID, body: "[]", headers: signed(good, now, "[]")}, 400},
			"nothing": {sending{source: src.ID, body: "", headers: signed(good, now, "")}, 400},
		} {
			got := y.send(c.sending)
			if got.status != c.want {
				t.Errorf("%s: %d %s", name, got.status, got.text)
			}
			if forged := y.send(sending{source: src.ID, body: body}); got.status == 401 && got.text != forged.text {
				t.Errorf("%s: %s tells more than %s", name, got.text, forged.text)
			}
		}
		if len(y.asks) != 0 || len(y.ledger(src.ID, 200).Data) != 0 {
			t.Errorf("filed %d asks, the ledger has %d rows", len(y.asks), len(y.ledger(src.ID, 200).Data))
		}
		// A body of exactly the limit is taken.
		most := `{"title": "t", "x": "` + strings.Repeat("a", maxBody-len(`{"title": "t", "x": ""}`)) + `"}`
		if got := y.post(src, most); len(most) != maxBody || got.status != 202 {
			t.Errorf("a mebibyte: %d %.80s", got.status, got.text)
		}
		// Who connects a source sees that something else was sent there.
		for _, n := range y.nodes {
			if err := n.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for id, want := range map[string]bool{src.ID: true, awaiting.ID: true} {
			if got, err := y.nodes[0].get(y.as("acme"), idIn{ID: id}); err != nil || (got.LastRefusedAt != nil) != want {
				t.Errorf("last refused %v, %v", got.LastRefusedAt, err)
			}
		}
	})
}

// Refused deliveries are counted for their address, and what is signed passes whatever its
// address has sent: customers of a vendor share its addresses.
func TestForgedShutNobodyOut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic, Repo: "acme/web"})
		other := y.connect(connectIn{Kind: inbound.Generic, Name: "other"})
		limits := limit.New(y.clock)
		send := func(source, ip, secret string) answer {
			return y.send(sending{source: source, body: "{}", headers: signed(secret, y.clock(), "{}"), ip: ip, limits: limits})
		}
		for source, ip := range map[string]string{src.ID: "192.0.2.1", id.New(): "192.0.2.3"} { // both are answered alike
			for i := range op.PerAddress {
				if got := send(source, ip, "x"); got.status != 401 {
					t.Fatalf("%d: %d %s", i, got.status, got.text)
				}
			}
			if got := send(source, ip, "x"); got.status != 429 {
				t.Errorf("beyond the limit: %d", got.status)
			}
		}
		if got := send(other.ID, "192.0.2.1", "x"); got.status != 401 { // which a vendor's customer sets up beside
			t.Errorf("beyond the limit, for another source: %d", got.status)
		}
		if got := send(src.ID, "192.0.2.1", *src.Secret); got.status != 200 {
			t.Errorf("signed, from the same address: %d %s", got.status, got.text)
		}
		if got := send(other.ID, "192.0.2.1", *other.Secret); got.status != 200 {
			t.Errorf("signed, for another source: %d %s", got.status, got.text)
		}
		if got := send(src.ID, "192.0.2.2", "x"); got.status != 401 {
			t.Errorf("from another address: %d", got.status)
		}
		y.wait(time.Minute + time.Second)
		if got := send(src.ID, "192.0.2.1", "x"); got.status != 401 {
			t.Errorf("after a minute: %d %s", got.status, got.text)
		}
	})
}

// A source has its own limit, which forged deliveries do not use up.
func TestRate(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.rate.most = 3
		src, other := y.connect(connectIn{Kind: inbound.Generic}), y.connect(connectIn{Kind: inbound.Generic, Name: "other"})
		for range 5 {
			y.send(sending{source: src.ID, body: "{}"})
		}
		for i, want := range []int{200, 200, 200, 429} {
			if got := y.post(src, "{}"); got.status != want {
				t.Errorf("delivery %d: %d %s", i, got.status, got.text)
			}
		}
		if got := y.post(other, "{}"); got.status != 200 {
			t.Errorf("another source: %d", got.status)
		}
	})
}

// A delivery is taken once, whichever node it comes to and however often at once; what
// repeats is counted.
func TestTwice(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic, Repo: "acme/web"})
		const body = `{"title": "t", "dedupe_key": "k"}`
		h := signed(*src.Secret, y.clock(), body)
		var all sync.WaitGroup
		var mu sync.Mutex
		kinds := map[Outcome]int{}
		for i := range 12 {
			all.Go(func() {
				got := y.send(sending{node: i % 2, source: src.ID, body: body, headers: h})
				mu.Lock()
				defer mu.Unlock()
				kinds[got.Kind]++
				if got.AskID != "ask-0" {
					t.Errorf("%s", got.text)
				}
			})
		}
		all.Wait()
		if kinds[Filed] != 1 || kinds[Noop] != 11 || len(y.asks) != 1 {
			t.Errorf("%v, %d asks", kinds, len(y.asks))
		}
		for i, want := range []int64{2, 3} {
			if got := y.post(src, fmt.Sprintf(`{"title": "t", "dedupe_key": "k", "n": %d}`, i)); got.Kind != Noop || got.Count != want {
				t.Errorf("repeat %d: %s", i, got.text)
			}
		}
		// The same words later are the same trouble once more, as their time is signed.
		y.wait(sameTimed + time.Second)
		if got := y.post(src, body); got.Kind != Noop || got.Count != 4 {
			t.Errorf("after ten minutes: %s", got.text)
		}
		hub := map[string]string{"X-Hub-Signature-256": "sha256=" + mac(*src.Secret, body)}
		for range 2 {
			if got := y.send(sending{source: src.ID, body: body, headers: hub}); got.Kind != Noop || got.Count != 0 {
				t.Errorf("without a time: %s", got.text)
			}
		}
		y.wait(sameTimed + time.Second)
		if got := y.send(sending{source: src.ID, body: body, headers: hub}); got.Kind != Noop || got.Count != 0 {
			t.Errorf("without a time, after ten minutes: %s", got.text)
		}
		// After two days the ask alone knows it.
		y.wait(remembered + time.Hour)
		if err := y.nodes[0].DB.Write(t.Context(), y.nodes[0].forget); err != nil {
			t.Fatal(err)
		}
		if got := y.post(src, body); got.Kind != Noop || got.Count != 5 {
			t.Errorf("after two days: %s", got.text)
		}
	})
}

// All that Sentry says about one issue is one ask.
func TestOneIssueOneAsk(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		const secret = "0123456789abcdef0123456789abcdef"
		src := y.connect(connectIn{Kind: inbound.Sentry, Projects: map[string]string{"Front-End": "acme/web", "api": "acme/api"},
			Secret: secret})
		if src.Secret != nil || src.State != Ready {
			t.Errorf("%+v", src)
		}
		for i, c := range []struct {
			resource, body string
			want           Receipt
		}{
			{"issue", `{"action": "created", "data": {"issue": {"id": "7", "title": "t", "project": {"slug": "front-end"}}}}`, Receipt{Kind: Filed, AskID: "ask-0", Count: 1}},
			{"event_alert", `{"action": "triggered", "data": {"event": {"issue_id": "7", "title": "t", "url": "https://s/api/0/projects/o/front-end/events/1/"}}}`, Receipt{Kind: Noop, AskID: "ask-0", Count: 2}},
			{"error", `{"action": "created", "data": {"error": {"issue_id": 7, "title": "t", "url": "https://s/api/0/projects/o/front-end/events/2/"}}}`, Receipt{Kind: Noop, AskID: "ask-0", Count: 3}},
			{"issue", `{"action": "resolved", "data": {"issue": {"id": "7", "title": "t"}}}`, Receipt{Kind: Dropped, Reason: EventIgnored}},
			{"issue", `{"action": "unresolved", "data": {"issue": {"id": "7", "title": "t", "substatus": "regressed", "lastSeen": "2026-11-02", "project": {"slug": "front-end"}}}}`, Receipt{Kind: Filed, AskID: "ask-1", Count: 1}},
			{"issue", `{"action": "created", "data": {"issue": {"id": "8", "title": "t", "project": {"slug": "other"}}}}`, Receipt{Kind: Dropped, Reason: NoRepo}},
			{"metric_alert", `{"action": "warning", "data": {"description_title": "t", "metric_alert": {"id": "1"}}}`, Receipt{Kind: Dropped, Reason: NoWorkSignal}},
			{"installation", `{"action": "created"}`, Receipt{Kind: Ack}},
		} {
			if got := y.sentry(src, secret, c.resource, c.body); got.Receipt != c.want {
				t.Errorf("%d: %s, want %+v", i, got.text, c.want)
			}
		}
		if f := y.asks["acme "+src.ID+" issue/7"]; f == nil || f.RepoID != "r1" || f.Trusted || !strings.Contains(f.Body, "UNTRUSTED") {
			t.Errorf("%+v", f)
		}
	})
}

// A delivery that was dropped is looked at again when it is sent again.
func TestDroppedAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic})
		const body = `{"title": "t", "project": "web"}`
		want := func(kind Outcome, reason Reason) {
			t.Helper()
			if got := y.post(src, body); got.Kind != kind || got.Reason != reason {
				t.Errorf("%s, want %s %s", got.text, kind, reason)
			}
		}
		want(Dropped, NoRepo)
		want(Dropped, NoRepo)
		to := "acme/old"
		if _, err := y.nodes[0].update(y.as("acme"), updateIn{ID: src.ID, Repo: &to}); err != nil {
			t.Fatal(err)
		}
		want(Dropped, RepoDisabled)
		projects := map[string]string{"web": "acme/api"}
		if _, err := y.nodes[0].update(y.as("acme"), updateIn{ID: src.ID, Projects: &projects}); err != nil {
			t.Fatal(err)
		}
		want(Filed, "")
		want(Noop, "")
		for _, f := range y.asks {
			if f.RepoID != "r2" {
				t.Errorf("%+v", f)
			}
		}
	})
}

// What this server or its bot has done comes back without consequence, as do tries of the
// address.
func TestEchoes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic, Repo: "acme/web", Bot: "Yard-Bot"})
		ours := func(body string) answer {
			h := signed(*src.Secret, y.clock(), body)
			h["X-Service-Event-Version"] = "1"
			return y.send(sending{source: src.ID, body: body, headers: h})
		}
		for body, want := range map[string]Receipt{
			`{"id": "evt_ours", "type": "pr.merged", "title": "t"}`:   {Kind: Dropped, Reason: OwnEcho},
			`{"id": "evt_theirs", "type": "pr.merged", "title": "t"}`: {Kind: Filed, AskID: "ask-0", Count: 1},
			`{"id": "evt_1", "type": "test.ping", "data": {}}`:        {Kind: Ack},
			`{"title": "t", "sender": "yard-bot"}`:                    {Kind: Dropped, Reason: OwnEcho},
			`{"type": "url_verification", "challenge": "<b>"}`:        {Kind: Ack, Challenge: "<b>"},
		} {
			if got := ours(body); got.Receipt != want {
				t.Errorf("%s: %s", body, got.text)
			}
		}
	})
}

// The secret before a rotation is good for a day, unless it ends at once; what is good no
// more is not kept.
func TestRotation(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		src := y.connect(connectIn{Kind: inbound.Generic, Repo: "acme/web"})
		works := func(secret string, want int) {
			t.Helper()
			if got := y.send(sending{source: src.ID, body: "{}", headers: signed(secret, y.clock(), "{}")}); got.status != want {
				t.Errorf("%d %s, want %d", got.status, got.text, want)
			}
		}
		rotate := func(in rotateIn) string {
			t.Helper()
			in.ID = src.ID
			got, err := y.nodes[0].rotate(y.as("acme"), in)
			if err != nil {
				t.Fatal(err)
			}
			return *got.Secret
		}
		first := *src.Secret
		second := rotate(rotateIn{})
		works(first, 200)
		works(second, 200)
		y.wait(overlap - time.Second)
		works(first, 200)
		y.wait(time.Second)
		works(first, 401)
		works(second, 200)
		if err := y.nodes[1].sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		y.write(func(tx *db.Tx) error {
			sealed, err := sealedOf.One(tx, src.ID)
			if err != nil {
				return err
			}
			text, err := y.nodes[0].Ring.Unseal(purpose(src.ID), sealed)
			if strings.Contains(string(text), first) || !strings.Contains(string(text), second) {
				t.Error("the old secret is kept, or the new one is not")
			}
			return err
		})
		third := rotate(rotateIn{AtOnce: true})
		works(second, 401)
		works(third, 200)
		fourth := rotate(rotateIn{})
		fifth := rotate(rotateIn{})
		works(third, 401)
		works(fourth, 200)
		works(fifth, 200)
		// A clock that is set back by a year prolongs no overlap beyond a day.
		y.wait(-365 * 24 * time.Hour)
		y.write(ClockSetBack)
		works(fourth, 200)
		y.wait(overlap + time.Second)
		works(fourth, 401)
	})
}
