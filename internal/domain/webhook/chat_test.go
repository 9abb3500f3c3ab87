package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/hook"
	"yardmaster/internal/policy"
)

func (y *yard) tell(source, userID string) {
	y.t.Helper()
	err := y.nodes[0].DB.Write(y.as("acme"), func(tx *db.Tx) error {
		return y.nodes[0].Tell(tx, Notice{Kind: "approval", Title: "#3 waits", Text: "Merge it?", URL: "https://ym.example.com/ui/prs/3"},
			source, userID)
	})
	if err != nil {
		y.t.Fatal(err)
	}
	y.pass()
}

// A chat gets what it understands, the same event gets to systems as it is; both once.
func TestFormats(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.hook("system", "notification.approval")
		y.hook("other")
		for _, format := range []hook.Format{hook.Slack, hook.Teams, hook.Discord} {
			if _, err := y.nodes[0].create(y.as("acme"), createIn{
				Name: string(format), URL: y.srv.URL + "/" + string(format), Format: format,
			}); err != nil {
				y.t.Fatal(err)
			}
		}
		y.tell("e1", "")
		y.tell("e1", "")
		if len(y.received) != 4 {
			y.t.Fatalf("%d requests", len(y.received))
		}
		seen := map[string]bool{}
		for _, r := range y.received {
			var body map[string]any
			if err := json.Unmarshal(r.body, &body); err != nil || !strings.Contains(string(r.body), "waits") {
				y.t.Fatalf("%v %s", err, r.body)
			}
			for _, member := range []string{"type", "blocks", "embeds", "attachments"} {
				seen[member] = seen[member] || body[member] != nil
			}
			if body["id"] != nil && (body["type"] != "notification.approval" || r.header.Get("X-Service-Signature") == "") {
				y.t.Errorf("%s", r.body)
			}
		}
		if len(seen) != 4 || !seen["blocks"] || !seen["embeds"] || !seen["attachments"] || !seen["type"] {
			y.t.Errorf("%v", seen)
		}
		for _, n := range []News{
			{Type: PullMerged, Source: "m", Data: []byte(`{"number": 7, "repo": "acme/web", "url": "https://ym.example.com/ui/prs/7"}`)},
		} {
			y.received = nil
			n.At = y.now()
			y.send(n)
			y.pass()
			if all := ""; len(y.received) != 4 {
				for _, r := range y.received {
					all += string(r.body)
				}
				y.t.Errorf("%d: %s", len(y.received), all)
			}
		}
	})
}

// A person has one webhook, which nobody else sees, and to which only what is theirs goes.
func TestOwn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		of := func(userID string) context.Context {
			return policy.With(y.as("acme"), policy.Actor{Credential: policy.Session, UserID: userID, AccountID: "acme"})
		}
		n := y.nodes[0]
		set := func(userID string, format hook.Format) SetOwn {
			out, err := n.setOwn(of(userID), setOwnIn{URL: y.srv.URL + "/" + userID, Format: format})
			if err != nil {
				y.t.Fatal(err)
			}
			return out
		}
		y.tell("e0", "ada") // who has none
		set("ada", "")
		set("ada", hook.Slack)
		set("bob", "")
		y.tell("e1", "ada")
		y.tell("e2", "")
		if len(y.received) != 1 || !strings.Contains(string(y.received[0].body), `"blocks"`) {
			y.t.Fatalf("%+v", y.received)
		}
		page, err := n.list(y.as("acme"), listIn{})
		if err != nil || len(page.Data) != 0 || len(y.ledger()) != 0 {
			y.t.Errorf("the account sees %+v, %+v", page.Data, y.ledger())
		}
		var ids []string
		if err := n.DB.Read(y.as("acme"), func(tx *db.Tx) error {
			h, ok, err := byName.Maybe(tx, "acme", ownName("ada"))
			if ok {
				ids = append(ids, h.ID)
			}
			if there, _, _, err := Takes(tx, ownName("ada"), PullMerged); err != nil || there {
				y.t.Errorf("an issue can be handed to the webhook of a person: %v", err)
			}
			return err
		}); err != nil || len(ids) != 1 {
			y.t.Fatal(err, ids)
		}
		for what, fn := range map[string]func(context.Context, idIn) error{
			"delete": func(ctx context.Context, in idIn) error { _, err := n.delete(ctx, in); return err },
			"test":   func(ctx context.Context, in idIn) error { _, err := n.test(ctx, in); return err },
			"revive": func(ctx context.Context, in idIn) error { _, err := n.revive(ctx, in); return err },
		} {
			if err := fn(y.as("acme"), idIn{ID: ids[0]}); err == nil {
				y.t.Errorf("the account may %s the webhook of a person", what)
			}
		}
		if _, err := n.testOwn(of("ada"), struct{}{}); err != nil {
			y.t.Fatal(err)
		}
		if err := n.DB.Read(y.as("acme"), func(tx *db.Tx) error {
			h, err := byID.One(tx, "acme", ids[0])
			if err != nil {
				return err
			}
			if name, err := nameOf(tx, h); name != "of ada" || err != nil {
				y.t.Errorf("the webhook is called %q: %v", name, err)
			}
			said, err := saidOf.One(tx, "acme", ids[0])
			if !strings.Contains(said, `"of ada"`) {
				y.t.Errorf("the record says %s", said)
			}
			return err
		}); err != nil {
			y.t.Fatal(err)
		}
		y.pass()
		if len(y.received) != 2 || !strings.Contains(string(y.received[1].body), "A test of the webhook your own") {
			y.t.Errorf("%+v", y.received)
		}
		for _, cleared := range []bool{true, false} {
			if out, err := n.clearOwn(of("ada"), struct{}{}); err != nil || out.Cleared != cleared {
				y.t.Errorf("%+v %v", out, err)
			}
		}
		y.tell("e3", "ada")
		if out, err := n.own(of("ada"), struct{}{}); err != nil || out.Webhook != nil || len(y.received) != 2 {
			y.t.Errorf("%+v %v", out, err)
		}
		if out, err := n.own(of("bob"), struct{}{}); err != nil || out.Webhook == nil || !out.Webhook.Healthy {
			y.t.Errorf("%+v %v", out, err)
		}
		if err := n.DB.Write(y.as("acme"), func(tx *db.Tx) error {
			return errors.Join(n.Tell(tx, Notice{Kind: "approval", Title: "#4 waits"}, "e4", "bob"), people.Remove(tx, "acme", "bob"))
		}); err != nil {
			y.t.Fatal(err)
		}
		if y.pass(); len(y.received) != 2 {
			y.t.Errorf("bob has left, and was sent %s", y.received[2].body)
		}
	})
}

// saidOf is what the audit record says of a test of a webhook.
var saidOf = db.Q[string](`SELECT data FROM audit WHERE account_id = $1 AND object = $2 AND kind = 'webhook.tested'`)
