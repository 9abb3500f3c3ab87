package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

func onBothEngines(t *testing.T, fn func(*testing.T, *yard)) {
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			fn(t, start(t, e))
		})
	}
}

type provisioned struct {
	Invited, Approved, Granted bool
	InvitationID               string `json:"invitation_id"`
	Grant                      *struct {
		ID       string
		Reason   string
		IssuedBy string `json:"issued_by"`
	}
}

func (y *yard) provision(operator, email string, devs int) (out provisioned) {
	y.t.Helper()
	decode(y.t, y.send("POST", "/v1/admin/provision", operator,
		fmt.Sprintf(`{"email": %q, "ai_devs": %d, "reason": "a guest"}`, email, devs)).want(200), &out)
	return out
}

// held is what somebody was given and still has.
func (y *yard) held(user string) (n int64) {
	y.t.Helper()
	y.in(y.acct, func(tx *db.Tx) (err error) {
		n, err = heldBy.One(tx, user)
		return err
	})
	return n
}

var (
	heldBy  = db.Q[int64](`SELECT CAST(COALESCE(SUM(ai_devs), 0) AS BIGINT) FROM grants WHERE user_id = $1 AND revoked_at IS NULL`)
	mailsTo = db.Q[int64](`SELECT COUNT(*) FROM mails WHERE recipient = $1`)
	putOff  = db.S(`UPDATE users SET approved_at = NULL WHERE id = $1`)

	inviteLink = regexp.MustCompile(`/invite/(dev_inv_\w+)`)
)

func (y *yard) invited(email string) (token string) {
	y.t.Helper()
	patience.Until(y.t, "an invitation is mailed to "+email, func() bool {
		for _, text := range y.letters(email) {
			if found := inviteLink.FindStringSubmatch(text); found != nil {
				token = found[1]
			}
		}
		return token != ""
	})
	return token
}

// Whichever way a person comes in, and however often an operator asks, they are
// given once.
func TestProvisionGivesOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		operator := y.operator()
		accept := func(login, user string) (granted bool) {
			t.Helper()
			var out struct{ Granted bool }
			mine := y.mint(y.acct, &user, policy.Scopes(policy.ReadAccount), nil)
			decode(t, y.send("POST", "/v1/invitations/accept", mine, `{"token": "`+y.invited(login+"@example.com")+`"}`).want(200), &out)
			return out.Granted
		}

		// Signed in by another way than the link, which still waits.
		if p := y.provision(operator, "bob@example.com", 4); !p.Invited || p.Granted {
			t.Fatalf("a stranger: %+v", p)
		}
		bob := y.person("bob", y.acct, policy.Member)
		if p := y.provision(operator, "bob@example.com", 4); p.Invited || !p.Granted || p.Grant.Reason != "a guest" {
			t.Fatalf("once they are known: %+v", p)
		}
		if accept("bob", bob) {
			t.Error("the link adds to what was given")
		}
		y.provision(operator, "bob@example.com", 4)
		if n := y.held(bob); n != 4 {
			t.Errorf("bob was given %d, not 4", n)
		}

		// By the link, and provisioned again.
		y.provision(operator, "cem@example.com", 3)
		cem := y.person("cem", y.acct, policy.Member)
		if !accept("cem", cem) {
			t.Error("the link gives nothing")
		}
		p := y.provision(operator, "cem@example.com", 3)
		if p.Granted || p.Grant == nil || p.Grant.Reason != "a guest" || p.Grant.IssuedBy != "user:"+y.user {
			t.Errorf("after the link: %+v", p)
		}
		if n := y.held(cem); n != 3 {
			t.Errorf("cem was given %d, not 3", n)
		}
	})
}

// Callers at the same time come to the same as one after the other.
func TestProvisionAtOnce(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		operator := y.operator()
		const callers = 6
		all := func(fn func(i int)) {
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() { fn(i) })
			}
			wg.Wait()
		}
		count := func(out []provisioned, is func(provisioned) bool) (n int) {
			for _, p := range out {
				if is(p) {
					n++
				}
			}
			return n
		}
		for round := range 3 {
			login := fmt.Sprint("guest", round)
			email := login + "@example.com"
			out := make([]provisioned, callers)
			all(func(i int) { out[i] = y.provision(operator, email, 2) })
			if n := count(out, func(p provisioned) bool { return p.Invited }); n != 1 {
				t.Errorf("%d of %d say they invited", n, callers)
			}
			if n := count(out, func(p provisioned) bool { return p.InvitationID == out[0].InvitationID }); n != callers {
				t.Errorf("%d invitations: %+v", callers-n, out)
			}
			y.in(y.acct, func(tx *db.Tx) error {
				n, err := mailsTo.One(tx, email)
				if n != 1 {
					t.Errorf("%d mails", n)
				}
				return err
			})

			user := y.person(login, y.acct, policy.Member)
			mine, link := y.mint(y.acct, &user, policy.Scopes(policy.ReadAccount), nil), y.invited(email)
			all(func(i int) {
				if i%3 == 0 {
					y.send("POST", "/v1/invitations/accept", mine, `{"token": "`+link+`"}`).want(200)
					return
				}
				out[i] = y.provision(operator, email, 2)
			})
			if n := y.held(user); n != 2 {
				t.Errorf("given %d, not 2", n)
			}
		}
	})
}

// New capacity lets what waits for it go on at once, wherever it comes from.
func TestNewCapacityWakesTheQueue(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		operator := y.operator()
		bobs := y.tenant("bobs")
		bob := y.person("bob", bobs, policy.Owner)
		y.push("acme/web", map[string]string{"README": "hello\n"})
		var issued struct{ ID string }
		for _, c := range []struct {
			name, account string
			do            func() answer
		}{
			{"seats", y.acct, func() answer {
				return y.send("PUT", "/v1/admin/accounts/"+y.acct+"/seats", operator, `{"seats": 7, "confirm": true}`)
			}},
			{"tier", y.acct, func() answer {
				return y.send("PUT", "/v1/admin/accounts/"+y.acct+"/tier", operator, `{"tier": "oss_verified", "confirm": true}`)
			}},
			{"a grant to the account", y.acct, func() answer {
				a := y.send("POST", "/v1/admin/grants", operator, `{"account_id": "`+y.acct+`", "ai_devs": 1, "reason": "r"}`)
				decode(t, a, &issued)
				return a
			}},
			{"its end", y.acct, func() answer { return y.send("DELETE", "/v1/admin/grants/"+issued.ID, operator, "") }},
			{"provision", bobs, func() answer {
				return y.send("POST", "/v1/admin/provision", operator, `{"email": "bob@example.com", "reason": "r"}`)
			}},
			{"a grant to a person", bobs, func() answer {
				return y.send("POST", "/v1/admin/grants", operator, `{"user_id": "`+bob+`", "ai_devs": 1, "reason": "r"}`)
			}},
			{"a repository that is switched on", y.acct, func() answer {
				return y.send("PATCH", "/v1/repos/acme/web", y.owner, `{"enabled": true}`)
			}},
			{"an owner", bobs, func() answer {
				y.in(bobs, func(tx *db.Tx) error {
					return seed.Member{Account: bobs, User: y.user, Role: string(policy.Member)}.Add(tx)
				})
				return y.send("PATCH", "/v1/admin/accounts/"+bobs+"/members/"+y.user, operator, `{"role": "owner"}`)
			}},
		} {
			own, any := y.hub.Watch(event.QueueTopic(c.account)), y.hub.Watch(event.QueueTopic(""))
			if a := c.do(); a.StatusCode >= 300 {
				t.Fatalf("%s: %s", c.name, a.body)
			}
			for topic, news := range map[string]<-chan struct{}{"its account's": own, "everybody's": any} {
				select {
				case <-news:
				default:
					t.Errorf("%s does not wake %s queue", c.name, topic)
				}
			}
		}
	})
}

// Where a private repository is not covered, the ways out are there.
func TestWaysOutOfATierWithoutPrivateRepositories(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	operator := y.operator()
	y.push("acme/web", map[string]string{"README": "hello\n"})
	tier := func(to string) {
		y.send("PUT", "/v1/admin/accounts/"+y.acct+"/tier", operator, `{"tier": "`+to+`", "confirm": true}`).want(200)
	}
	enable := func() answer { return y.send("PATCH", "/v1/repos/acme/web", y.owner, `{"enabled": true}`) }
	tier("free")
	said := string(enable().want(402).body)
	for _, way := range regexp.MustCompile(`\w+\.\w+\)`).FindAllString(said, -1) {
		if !slices.ContainsFunc(Ops(), func(o Op) bool { return o.ID == strings.TrimSuffix(way, ")") }) {
			t.Errorf("there is no way %s", way)
		}
	}
	if !strings.Contains(said, "account.oss_verification_apply") || !strings.Contains(said, "account.set_tier") {
		t.Error(said)
	}
	tier("oss_verified")
	enable().want(200)
}

// What operators do stands on the record of whom it concerns, without what is
// private, and on the platform's; the account that their token is bound to has
// no part in it. All chains stay whole.
func TestOperatorsActs(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		operator := y.operator()
		bobs := y.tenant("bobs")
		bob := y.person("bob", bobs, policy.Owner)
		read := y.mint(bobs, &bob, policy.Owner.Ceiling(), nil)
		y.person("cem", bobs, policy.Member)
		const secret = "nobody else's business"
		before := len(y.exported())
		var grant struct{ ID string }
		decode(t, y.send("POST", "/v1/admin/grants", operator, `{"user_id": "`+bob+`", "ai_devs": 1, "reason": "`+secret+`"}`).want(201),
			&grant)
		var apply, guest struct{ ID string }
		decode(t, y.send("POST", "/v1/access-requests", "the-form", `{"email": "carl@example.com"}`).want(201), &apply)
		decode(t, y.send("POST", "/v1/access-requests", "the-form", `{"email": "dana@example.com"}`).want(201), &guest)
		var sent struct{ Invitation struct{ ID string } }
		for _, c := range [][3]string{
			{"DELETE", "/v1/admin/grants/" + grant.ID},
			{"POST", "/v1/admin/provision", `{"email": "bob@example.com", "reason": "` + secret + `"}`},
			{"POST", "/v1/admin/provision", `{"email": "eve@example.com", "reason": "` + secret + `"}`},
			{"POST", "/v1/admin/users/" + bob + "/suspend", ""},
			{"POST", "/v1/admin/users/" + bob + "/approve", ""},
			{"POST", "/v1/admin/access-requests/" + apply.ID + "/decline", `{"reason": "` + secret + `"}`},
			{"POST", "/v1/admin/access-requests/" + guest.ID + "/invite", `{}`},
			{"PUT", "/v1/admin/accounts/" + bobs + "/tier", `{"tier": "free", "confirm": true}`},
			{"PUT", "/v1/admin/accounts/" + bobs + "/seats", `{"seats": 3, "confirm": true}`},
			{"PUT", "/v1/admin/accounts/" + bobs + "/spend-cap", `{"usd": 3, "confirm": true}`},
			{"PATCH", "/v1/admin/accounts/" + bobs + "/members/" + bob, `{"role": "owner"}`},
		} {
			a := y.send(c[0], c[1], operator, c[2]).want(200)
			if strings.HasSuffix(c[1], "/invite") {
				decode(t, a, &sent)
			}
		}
		y.send("POST", "/v1/admin/invitations/"+sent.Invitation.ID+"/resend", operator, "").want(200)
		y.send("POST", "/v1/admin/invitations/"+sent.Invitation.ID+"/revoke", operator, "").want(200)

		if rows := y.exported(); len(rows) != before {
			t.Errorf("on the record of the account that the token is bound to: %s", rows[:len(rows)-before])
		}
		if strings.Contains(string(y.send("GET", "/v1/audit/events", read, "").want(200).body), secret) {
			t.Error("the account reads what is private")
		}
		var page struct {
			Data []struct{ Kind, Actor string }
		}
		decode(t, y.send("GET", "/v1/audit/events", read, "").want(200), &page)
		told := map[string]int{}
		for _, row := range page.Data {
			if row.Actor == event.Operator {
				told[row.Kind]++
			}
			if strings.Contains(row.Actor, y.user) {
				t.Errorf("%s names the operator to the account", row.Kind)
			}
		}
		for _, kind := range []string{"grant.issued", "grant.revoked", "grant.provisioned", "user.suspended", "user.approved",
			"account.set_tier", "account.set_seats", "account.set_spend_cap"} {
			if told[kind] != 1 {
				t.Errorf("the account is told of %s %d times", kind, told[kind])
			}
		}
		lines, said := []string{}, 0
		for path := "/v1/admin/audit?per_page=200"; path != ""; {
			var all struct {
				Data       []json.RawMessage
				NextCursor *string `json:"next_cursor"`
			}
			decode(t, y.send("GET", path, y.owner, "").want(200), &all)
			for _, row := range all.Data {
				lines = append(lines, string(row))
				said += strings.Count(string(row), secret)
			}
			if path = ""; all.NextCursor != nil {
				path = "/v1/admin/audit?per_page=200&cursor=" + url.QueryEscape(*all.NextCursor)
			}
		}
		if said != 4 {
			t.Errorf("the platform's record has %d of 4 reasons", said)
		}
		if _, err := hashchain.Verify(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
			t.Error(err)
		}
	})
}

// A sign-in is remembered when its session is gone.
func TestLastActiveOutlivesTheSession(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		bob := y.person("bob", y.acct, policy.Member)
		at := func() (when *string) {
			var u struct {
				LastActiveAt *string `json:"last_active_at"`
			}
			decode(t, y.send("GET", "/v1/admin/users/"+bob, y.owner, "").want(200), &u)
			return u.LastActiveAt
		}
		if at() != nil {
			t.Error("somebody who was never here was active")
		}
		y.send("POST", "/auth/email", "", `{"email": "bob@example.com"}`).want(202)
		a := y.send("POST", "/auth/email/verify", "", `{"email": "bob@example.com", "code": "`+y.code("bob@example.com", "")+`"}`).want(200)
		cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
		in := at()
		y.send("POST", "/auth/logout", "", "", "Cookie", cookie, "Origin", y.URL()).want(200)
		if out := at(); in == nil || out == nil || *out != *in {
			t.Errorf("active at %v, and %v once signed out", in, out)
		}
	})
}

// Whoever is let off the waitlist by provision hears of it.
func TestProvisionTellsThePerson(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	bob := y.person("bob", y.acct, policy.Member)
	y.in(y.acct, func(tx *db.Tx) error {
		_, err := putOff.Exec(tx, bob)
		return err
	})
	for range 2 {
		y.provision(y.operator(), "bob@example.com", 1)
	}
	y.in(y.acct, func(tx *db.Tx) error {
		n, err := mailsTo.One(tx, "bob@example.com")
		if n != 1 {
			t.Errorf("%d mails", n)
		}
		return err
	})
}

var ownersHeld = db.Q[string](`SELECT user_id FROM memberships WHERE account_id = $1 AND role = 'owner' ORDER BY user_id`).ForUpdate()

// An operator and the members themselves, each demoting an owner, leave one.
func TestLastOwnerByTwoRoutes(t *testing.T) {
	t.Parallel()
	y := start(t, db.Postgres)
	bob := y.person("bob", y.acct, policy.Owner)
	operator := y.operator()
	answered := make(chan answer, 1)
	y.in(y.acct, func(tx *db.Tx) error { // the members' route, about ada
		if _, err := ownersHeld.All(tx, y.acct); err != nil {
			return err
		}
		if _, err := seed.SetRole.Exec(tx, y.acct, y.user, "viewer"); err != nil {
			return err
		}
		go func() {
			answered <- y.send("PATCH", "/v1/admin/accounts/"+y.acct+"/members/"+bob, operator, `{"role": "viewer"}`)
		}()
		for {
			// What a transaction has seen of the others stays as it was.
			if _, err := db.Select[string](tx, db.Build(`SELECT pg_stat_clear_snapshot()::TEXT`)); err != nil {
				return err
			}
			n, err := db.Select[int64](tx,
				db.Build(`SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`))
			if err != nil || n[0] > 0 {
				return err
			}
			select {
			case a := <-answered:
				answered <- a
				return nil
			default:
			}
		}
	})
	(<-answered).problem(409, "last_owner")
}

var makeAdmin = db.S(`UPDATE users SET platform_admin = TRUE WHERE id = $1`)

// Nobody shuts themselves out, and two who shut each other out leave one in.
func TestSuspendingOperators(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		bob := y.person("bob", y.acct, policy.Owner)
		suspend := func(by, whom string) answer {
			return y.send("POST", "/v1/admin/users/"+whom+"/suspend", by, "")
		}
		suspend(y.operator(), y.user).problem(409, "last_platform_admin")
		y.in(y.acct, func(tx *db.Tx) error {
			_, err := makeAdmin.Exec(tx, bob)
			return err
		})
		suspend(y.operator(), y.user).problem(409, "suspends_self")
		bobs := y.mintAs(policy.Operator, y.acct, &bob, policy.OperatorOnly, nil)
		out := make([]answer, 2)
		var both sync.WaitGroup
		both.Go(func() { out[0] = suspend(y.operator(), bob) })
		both.Go(func() { out[1] = suspend(bobs, y.user) })
		both.Wait()
		// The late one is refused for being the last's, or no operator any more.
		if ok := slices.IndexFunc(out, func(a answer) bool { return a.StatusCode == 200 }); ok < 0 || out[1-ok].StatusCode/100 != 4 {
			t.Errorf("%d and %d", out[0].StatusCode, out[1].StatusCode)
		}
	})
}

// A role that an operator takes away is gone with the next request.
func TestDemotedAtOnce(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	bob := y.person("bob", y.acct, policy.Admin)
	mine := y.mint(y.acct, &bob, policy.Admin.Ceiling(), nil)
	set := func() answer { return y.send("PUT", "/v1/templates/mine", mine, `{"agent": "builtin"}`) }
	set().want(200)
	y.send("PATCH", "/v1/admin/accounts/"+y.acct+"/members/"+bob, y.operator(), `{"role": "viewer"}`).want(200)
	set().problem(403, "missing-scope")
}
