//go:build !race

package dashboard_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

type gift struct {
	ID, Kind, State string
	Model           *struct{ Model string }
}

// What is given is made in a dialog, is there after a reload, and is taken back.
func TestGiftsAreGiven(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	visit(b, "/ui/settings/gifts", "Gifts to open source")
	b.See("You have given nothing yet.")
	b.Button("Give something")
	b.See("You have no key that can be given")
	b.Press("Escape")
	call[any](y, http.MethodPost, "/v1/billing/keys", `{"provider": "anthropic", "label": "spare", "key": "sk-ant-0123456789abcdef"}`)
	b.Go("/ui/settings/gifts")
	b.Button("Give something")
	b.Choose("target", "pool")
	b.Until("the key", `document.querySelector("dialog select[name=key_id]")?.value`)
	b.Button("Give the money")
	b.Until("the refusal at its field", `document.querySelector("dialog [name=usd][aria-invalid=true]")`)
	b.Fill("At most", "12.5")
	b.Fill("No other models than", "claude-haiku-4-5")
	both(b, "the dialog of a gift")
	shoot(b, "gift-give")
	b.Button("Give the money")
	b.See("Given. Thank you.")
	b.Go("/ui/settings/gifts")
	b.See("Money (spare) for every repository that takes gifts")
	b.See("$0.00 of $12.50 used in 0 calls, $12.50 left")
	b.See("only claude-haiku-4-5")
	both(b, "what was given")
	shoot(b, "gifts-given")
	visit(b, "/ui/usage", "Usage and budgets")
	b.See("Given to open source")
	b.See("$0.00 of $12.50 used")
	b.Go("/ui/settings/gifts")
	b.Button("Take it back")
	b.Yes()
	b.See("taken back")
	if got := call[struct{ Data []gift }](y, http.MethodGet, "/v1/donations", "").Data; len(got) != 1 || got[0].State != "parked" {
		t.Errorf("the gifts are %v", got)
	}
	content(b)
}

// A box is given by whoever signed in just now: the dialog asks for the password, and goes on.
func TestGiftOfABoxAsksWhoItIs(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	box := id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		if err := (seed.Box{ID: box, Account: y.Account}).Add(tx); err != nil {
			return err
		}
		_, err := seed.SetLevels.Exec(tx, box, `["landlock"]`, `{"landlock":["files","processes","unix_sockets","network"]}`)
		return err
	})
	b.Before(`{ const real = fetch; let asked = 0; window.fetch = async (...a) => {
		const refuses = a[1]?.method === "POST" && String(a[0]).endsWith("/v1/donations") ? [[402, "payment-required"], [403, "reauth-required"]][asked++] : null;
		if (refuses) return new Response(JSON.stringify({type: "/problems/" + refuses[1], status: refuses[0], detail: "No."}), {status: refuses[0]});
		return real(...a) } }`)
	visit(b, "/ui/settings/gifts", "Gifts to open source")
	b.Button("Give something")
	b.Choose("kind", "compute")
	b.Choose("target", "pool")
	b.Until("the box", `document.querySelector("dialog select[name=box_id]")?.value`)
	b.Button("Give the box")
	b.See("A key or a box is given by donors to open source.")
	b.Button("Give the box")
	b.See("has signed in within the last hour")
	both(b, "the question who it is")
	b.Fill("Your password", "not the one")
	b.Button("Give the box")
	b.Until("a refusal", `document.querySelector("dialog [role=alert]")`)
	b.Fill("Your password", rig.Password)
	b.Button("Give the box")
	b.See("Given. Thank you.")
	b.See("A box (" + box + ") for every repository")
}

// What others gave says how much was used of it; its model is chosen out of those that the
// giver allows, and it is declined.
func TestGiftsAreReceived(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	work(y)
	repo := call[struct{ ID string }](y, http.MethodGet, "/v1/repos/acme/web", "").ID
	other, bob := id.New(), id.New()
	y.Write(other, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Account{ID: other, Login: "globex"}, seed.User{ID: bob, Login: "bob"},
			seed.Member{Account: other, User: bob, Role: string(policy.Owner)})
	})
	y.Write(y.Account, func(tx *db.Tx) error {
		if _, err := seed.SetPrivate.Exec(tx, repo, false); err != nil {
			return err
		}
		_, err := seed.SetConsent.Exec(tx, repo, true, false)
		return err
	})
	bearer := y.Mint(policy.PAT, other, bob, policy.Scopes(policy.WriteBilling, policy.WriteDonations), nil)
	made := func(path, body string) (id string) {
		resp, text := y.Send(http.MethodPost, path, bearer, body)
		var row gift
		if err := json.Unmarshal(text, &row); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, text)
		}
		return row.ID
	}
	key := made("/v1/billing/keys", `{"provider": "anthropic", "label": "spare", "key": "sk-ant-0123456789abcdef"}`)
	to := `"target": "project", "repo": "acme/web", "key_id": ` + quoted(key)
	made("/v1/donations", `{"kind": "llm", `+to+`, "models": [{"provider": "anthropic", "model": "claude-haiku-4-5"},
		{"provider": "anthropic", "model": "claude-opus-4-1"}]}`)
	visit(b, "/ui/settings/gifts?tab=received", "Gifts to open source")
	b.See("A key from globex for acme/web")
	b.See("$0.00 used in 0 calls, no limit")
	b.Button("Model")
	b.Choose("model", "anthropic claude-opus-4-1")
	b.Button("Choose the model")
	b.See("all calls go to claude-opus-4-1")
	both(b, "what was received")
	shoot(b, "gifts-received")
	b.Go("/ui/settings/gifts?tab=received")
	b.See("all calls go to claude-opus-4-1")
	received := func() gift {
		return call[struct{ Data []gift }](y, http.MethodGet, "/v1/donations/received", "").Data[0]
	}
	if m := received().Model; m == nil || m.Model != "claude-opus-4-1" {
		t.Errorf("the model is %v", m)
	}
	b.Button("Decline")
	b.Yes()
	b.See("over")
	if got := received().State; got != "parked" {
		t.Errorf("the gift is %s", got)
	}
	content(b)
}
