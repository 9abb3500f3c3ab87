package box

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

func TestSetOwner(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		path := "/v1/runners/" + f.enrolled(publicKey(t)).ID + "/owner"
		type body = map[string]string
		admin := []string{"X-Caller", "acme/" + string(policy.AdminReadPlat)}
		var b Box
		f.want(200, "", "PUT", path, body{"target": User, "owner_id": "ann"}).into(t, &b)
		if b.Owner.Target != User || *b.Owner.ID != "ann" || b.Consent != nil {
			t.Errorf("owner %+v", b.Owner)
		}
		f.want(200, "", "PUT", path, body{"target": Shared}, admin...).into(t, &b)
		if b.Owner.Target != Shared || b.Owner.ID != nil {
			t.Errorf("owner %+v", b.Owner)
		}
		f.want(200, "", "PUT", path, body{"target": Org}).into(t, &b)
		if b.Owner.Target != Org || *b.Owner.ID != "acme" {
			t.Errorf("owner %+v", b.Owner)
		}
		f.want(422, "owner-not-possible", "PUT", path, body{"target": Shared})
		f.want(422, "owner-not-possible", "PUT", path, body{"target": Org, "owner_id": "rival"})
		f.want(422, "owner-not-possible", "PUT", path, body{"target": User, "owner_id": "bob"})
		f.want(400, "invalid", "PUT", path, body{"target": User})
		f.want(400, "invalid", "PUT", path, body{"target": "all"})
	})
}

// TestNobodyOwnsABoxUnasked holds that to make a box somebody else's changes nothing but that
// they are asked, and that nothing but a fresh session of theirs agrees.
func TestNobodyOwnsABoxUnasked(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.User{ID: "bob"}, seed.Member{Account: "acme", User: "bob"},
				seed.Member{Account: "rival", User: "bob"}, seed.Member{Account: "rival", User: "ann"})
		})
		box := f.enrolled(publicKey(t)).ID
		owner, home, away := "/v1/runners/"+box+"/owner", "/v1/me/runners/"+box+"/accounts/acme", "/v1/me/runners/"+box+"/accounts/rival"
		as := func(who string) []string { return []string{"X-Caller", "acme@" + who} }
		list := func(who string) []Runner {
			var out struct{ Data []Runner }
			f.want(200, "", "GET", "/v1/me/runners", nil, as(who)...).into(t, &out)
			return out.Data
		}
		var b Box
		f.want(200, "", "PUT", owner, map[string]string{"target": User, "owner_id": "bob"}).into(t, &b)
		if b.Owner.Target != Org || b.Consent == nil || *b.Consent != "pending" || *b.ConsentOf != "bob" {
			t.Fatalf("asked: %+v, consent %v", b.Owner, b.Consent)
		}
		if got := f.box(box); got.Owner.Target != Org || got.Consent == nil {
			t.Errorf("the box says %+v", got)
		}
		if all := list("bob fresh"); len(all) != 1 || all[0].Mine || len(all[0].Accounts) != 1 {
			t.Errorf("the one who was asked sees %+v", all)
		} else if one := all[0].Accounts[0]; one.AskedBy == nil || one.Works {
			t.Errorf("the one who was asked sees %+v", one)
		}
		if all := list("ann fresh"); len(all) != 0 {
			t.Errorf("somebody else sees %+v", all)
		}

		f.want(403, "", "PUT", home, nil, as("bob token")...)
		f.want(403, "reauth-required", "PUT", home, nil, as("bob stale")...)
		f.want(403, "", "PUT", home, nil, as("bob bound")...)
		f.want(409, "not-your-box", "PUT", home, nil, as("ann fresh")...)
		f.want(409, "not-your-box", "PUT", away, nil, as("bob fresh")...) // not his yet
		f.want(404, "", "PUT", "/v1/me/runners/"+box+"/accounts/else", nil, as("bob fresh")...)

		var mine Runner
		f.want(200, "", "PUT", home, nil, as("bob fresh")...).into(t, &mine)
		if !mine.Mine || !mine.Accounts[0].Works || len(mine.Accounts) != 2 || mine.Accounts[1].Works {
			t.Errorf("agreed: %+v", mine)
		}
		if got := f.box(box); got.Owner.Target != User || *got.Owner.ID != "bob" || got.Consent != nil {
			t.Errorf("the box says %+v, consent %v", got.Owner, got.Consent)
		}
		works := func(account string) (ok bool) {
			f.write(func(tx *db.Tx) (err error) {
				_, ok, err = fleet.Holding(tx, box, account)
				return err
			})
			return ok
		}
		f.want(403, "reauth-required", "PUT", away, nil, as("bob stale")...)
		f.want(200, "", "PUT", away, nil, as("bob fresh")...).into(t, &mine)
		if mine.Accounts[1].AgreedAt == nil || mine.Accounts[1].Works || works("rival") {
			t.Errorf("agreed, and not let in: %+v", mine)
		}
		f.write(func(tx *db.Tx) error { _, err := seed.LetIn.Exec(tx, "rival", true); return err })
		if !works("rival") {
			t.Error("agreed and let in: it does not work there")
		}
		var seen struct{ Data []Box }
		f.write(func(tx *db.Tx) error {
			for _, account := range []string{"acme", "rival"} {
				err := seed.Add(tx, seed.Repo{ID: account, Account: account}, seed.Task{ID: account, Account: account, Repo: account},
					seed.Run{ID: account, Account: account, Task: account, Repo: account, Box: box})
				if err != nil {
					return err
				}
			}
			return nil
		})
		f.want(200, "", "GET", "/v1/runners?filter=outside:true&filter=id:"+box[len(box)-8:], nil, "X-Caller", "rival").into(t, &seen)
		if len(seen.Data) != 1 || seen.Data[0].Outside == nil || seen.Data[0].Presence.Active != 1 || f.box(box).Presence.Active != 2 {
			t.Errorf("the other account sees %+v", seen.Data)
		} else if out := seen.Data[0].Outside; out.Account != "acme" || out.Right != fleet.Consent || out.AgreedAt == nil {
			t.Errorf("the other account sees %+v", out)
		}
		for query, account := range map[string]string{"": "rival", "filter=id:" + box: "rival", "filter=name:" + seen.Data[0].Name: "rival",
			"filter=outside:true&filter=id:abcdabcd": "rival", "filter=outside:true": "acme"} {
			if f.want(200, "", "GET", "/v1/runners?"+query, nil, "X-Caller", account).into(t, &seen); len(seen.Data) != 0 {
				t.Errorf("%s of %s lists %+v", query, account, seen.Data)
			}
		}
		f.write(func(tx *db.Tx) error {
			defer tx.About("rival")()
			if all, err := f.Rows(tx, nil, 9); len(all) != 0 || err != nil {
				t.Errorf("followers are told of %+v, %v", all, err)
			}
			return nil
		})
		f.want(404, "", "GET", "/v1/runners/"+box, nil, "X-Caller", "rival")

		taken := len(f.runs.takenBack)
		f.want(200, "", "DELETE", away, nil, as("bob token")...).into(t, &mine)
		if works("rival") || mine.Accounts[1].AgreedAt != nil || len(f.runs.takenBack) != taken+1 {
			t.Errorf("withdrawn: %+v", mine)
		}

		// Whatever changes whose work it takes ends what was agreed.
		f.want(200, "", "PUT", away, nil, as("bob fresh")...)
		f.want(200, "", "PUT", owner, map[string]string{"target": User, "owner_id": "bob"}, as("bob token")...)
		if !works("rival") {
			t.Error("to say again whose it is ended what was agreed")
		}
		f.want(200, "", "PUT", owner, map[string]string{"target": Org})
		f.want(200, "", "PUT", owner, map[string]string{"target": User, "owner_id": "bob"}, as("bob token")...)
		if works("rival") {
			t.Error("a consent has outlived its owner")
		}

		// A membership that ended takes the consent with it, for good, however close by the clock
		// of another node it begins again.
		for _, account := range []string{"rival", "acme"} {
			f.want(200, "", "PUT", away, nil, as("bob fresh")...)
			f.write(func(tx *db.Tx) error { return f.RightsChanged(tx, "bob") })
			before, taken := works("rival"), len(f.runs.takenBack)
			f.write(func(tx *db.Tx) error {
				if _, err := seed.DropMember.Exec(tx, account, "bob"); err != nil {
					return err
				}
				return f.RightsChanged(tx, "bob")
			})
			gone := works("rival")
			f.write(func(tx *db.Tx) error {
				return seed.Member{Account: account, User: "bob", Since: tx.Now.Add(-people.Apart).UnixMicro()}.Add(tx)
			})
			if !before || gone || works("rival") || len(f.runs.takenBack) != taken+1 {
				t.Errorf("left %s: works %t before, %t after, and added again %t", account, before, gone, works("rival"))
			}
		}
		f.want(200, "", "DELETE", home, nil, as("bob token")...)
		if got := f.box(box); got.Owner.Target != Org {
			t.Errorf("given back: %+v", got.Owner)
		}
	})
}

// TestMessagesEndWithTheRight holds that a message that waits for a box is not given to it
// once the box may not take work of that account, whichever way that has ended.
func TestMessagesEndWithTheRight(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.write(func(tx *db.Tx) error { return seed.Member{Account: "rival", User: "ann"}.Add(tx) })
		f.run()
		m := f.join()
		agreed := seed.Consent{BoxID: m.ID, AccountID: "rival", UserID: "ann", AgreedAt: new(int64(5))}
		owner := "ann"
		for how, end := range map[string]func(tx *db.Tx) error{
			"the owner takes it back": func(tx *db.Tx) error {
				return seed.Consent{BoxID: m.ID, AccountID: "rival", UserID: "ann"}.Add(tx)
			},
			"the account lets nobody in":   func(tx *db.Tx) error { _, err := seed.LetIn.Exec(tx, "rival", false); return err },
			"the owner leaves the account": func(tx *db.Tx) error { _, err := seed.DropMember.Exec(tx, "rival", "ann"); return err },
		} {
			f.write(func(tx *db.Tx) error {
				if _, err := seed.DropMember.Exec(tx, "rival", "ann"); err != nil {
					return err
				}
				if _, err := seed.SetTarget.Exec(tx, m.ID, "user", &owner); err != nil {
					return err
				}
				if _, err := seed.LetIn.Exec(tx, "rival", true); err != nil {
					return err
				}
				return seed.Add(tx, seed.Member{Account: "rival", User: "ann"}, agreed)
			})
			ctx := db.WithAccount(t.Context(), "rival")
			if err := f.DB.Write(ctx, func(tx *db.Tx) error {
				return f.Enqueue(tx, m.ID, protocol.Command{Kind: protocol.CommandMessage, Run: "r", Text: "Go on."})
			}); err != nil {
				t.Fatal(err)
			}
			f.write(func(tx *db.Tx) error {
				return f.Enqueue(tx, m.ID, protocol.Command{ID: how, Kind: protocol.CommandHalt, Run: "r"})
			})
			if got := m.next().Commands; len(got) != 2 {
				t.Fatalf("%s: with the right it is given %+v", how, got)
			}
			f.write(end)
			if got := m.next().Commands; len(got) != 1 || got[0].ID != how {
				t.Errorf("%s: it is given %+v", how, got)
			}
			m.done(how)
			f.write(func(tx *db.Tx) error {
				if r, err := standingOf(tx, m.ID); err != nil || r.Waiting {
					t.Errorf("%s: something waits for it: %t, %v", how, r.Waiting, err)
				}
				return DropMessages(tx, m.ID, "rival")
			})
			if left := read(f, countOwed, m.ID); left != 0 {
				t.Errorf("%s: %d are left", how, left)
			}
		}
	})
}

// TestOwnerDeclines holds that who is asked can say no, and who asks can ask somebody else.
func TestOwnerDeclines(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	f := newFixture(t, d, true)
	f.write(func(tx *db.Tx) error {
		return seed.Add(tx, seed.User{ID: "bob"}, seed.Member{Account: "acme", User: "bob"},
			seed.User{ID: "cid"}, seed.Member{Account: "acme", User: "cid"})
	})
	box := f.enrolled(publicKey(t)).ID
	owner, home := "/v1/runners/"+box+"/owner", "/v1/me/runners/"+box+"/accounts/acme"
	ask := func(who string) { f.want(200, "", "PUT", owner, map[string]string{"target": User, "owner_id": who}) }
	ask("bob")
	ask("cid")
	f.want(409, "not-your-box", "PUT", home, nil, "X-Caller", "acme@bob fresh")
	f.want(200, "", "DELETE", home, nil, "X-Caller", "acme@cid token")
	f.want(409, "not-your-box", "PUT", home, nil, "X-Caller", "acme@cid fresh")
	if b := f.box(box); b.Consent != nil || b.Owner.Target != Org {
		t.Errorf("declined: %+v %v", b.Owner, b.Consent)
	}
	ask("bob")
	f.want(200, "", "PUT", owner, map[string]string{"target": Org})
	f.want(409, "not-your-box", "PUT", home, nil, "X-Caller", "acme@bob fresh")
	for kind, want := range map[string]int64{"box.owner_asked": 3, "box.owner_declined": 1, "box.owner_set": 1} {
		if n := read(f, countAudit, box, kind); n != want {
			t.Errorf("%s is on record %d times, want %d", kind, n, want)
		}
	}
}
