package app

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

var mailedCode = regexp.MustCompile(`(?m)^ {4}([0-9]{6})$`)

// letters are the mails that were sent to an address, oldest first.
func (y *yard) letters(to string) (texts []string) {
	y.t.Helper()
	all, err := mail.Folder{Dir: filepath.Join(y.cfg.Data, "mail")}.List()
	if err != nil {
		y.t.Fatal(err)
	}
	for _, l := range all {
		if l.To == to {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

// code waits for a code that is mailed to an address, another one than before.
func (y *yard) code(to, before string) (code string) {
	y.t.Helper()
	patience.Until(y.t, "a code is mailed to "+to, func() bool {
		for _, text := range y.letters(to) {
			if found := mailedCode.FindStringSubmatch(text); found != nil {
				code = found[1]
			}
		}
		return code != "" && code != before
	})
	return code
}

// Somebody who has no user follows the link of an invitation, copies a code
// from a mail, and is a member.
func TestInvitedWithoutAnAccount(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			y := start(t, e)
			var sent struct{ Link string }
			decode(t, y.send("POST", "/v1/org/members", y.owner, `{"email": "New.Person@Example.com", "role": "admin"}`).want(201), &sent)
			v := y.visitor()
			_, page := v.open("GET", sent.Link, "")
			_, page = v.submit(page)
			_, page = v.submit(page, "code", y.code("new.person@example.com", ""))
			resp, page := v.submit(page, "password", "a long password") // nothing else would let them in again
			if resp.StatusCode != 200 || !strings.Contains(page, "It was accepted") {
				t.Fatalf("%s:\n%s", resp.Status, page)
			}
			_, body := v.open("GET", y.URL()+"/v1/me", "")
			var me struct {
				Approved bool
				User     struct{ Login, Name string }
				Account  struct{ Login, Role string }
				Members  []struct{ Login string } `json:"memberships"`
			}
			decode(t, answer{t: t, body: []byte(body)}, &me)
			if !me.Approved || me.User.Login != "new-person" || me.Account.Login != "acme" || me.Account.Role != "admin" ||
				len(me.Members) != 1 {
				t.Errorf("they are %+v", me)
			}
		})
	}
}

// Somebody who was invited off the waitlist is through the gate, with what was
// promised to them, in an account of their own.
func TestInvitedToThePlatform(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--waitlist", "on")
	operator := y.operator()
	var asked struct{ ID string }
	decode(t, y.send("POST", "/v1/access-requests", "the-form", `{"email": "eve@example.com"}`).want(201), &asked)
	var sent struct{ Link string }
	decode(t, y.send("POST", "/v1/admin/access-requests/"+asked.ID+"/invite", operator, `{"ai_devs": 2}`).want(200), &sent)
	v := y.visitor()
	_, page := v.open("GET", sent.Link, "")
	_, page = v.submit(page)
	_, page = v.submit(page, "code", y.code("eve@example.com", ""))
	if resp, page := v.submit(page, "password", "a long password"); resp.StatusCode != 200 ||
		!strings.Contains(page, "It was accepted") {
		t.Fatalf("%s:\n%s", resp.Status, page)
	}
	eve := v.me()
	if !eve.Approved || eve.Account.Login != "eve" || eve.Account.Role != "owner" {
		t.Errorf("she is %+v", eve)
	}
	var grants struct {
		Data []struct {
			AIDevs int `json:"ai_devs"`
			Active bool
		}
	}
	decode(t, y.send("GET", "/v1/admin/grants?user_id="+eve.User.ID, y.owner, "").want(200), &grants)
	if len(grants.Data) != 1 || grants.Data[0].AIDevs != 2 || !grants.Data[0].Active {
		t.Errorf("she was given %+v", grants.Data)
	}
}

// With the waitlist on, a stranger may sign in, holds read:account and nothing
// else, and everything that follows from their role once they are let through.
func TestWaitlist(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--waitlist", "on")
	v := y.visitor()
	_, page := v.open("POST", y.URL()+"/auth/email", "email=eve%40example.com&return_to=%2Fv1%2Fme")
	_, page = v.submit(page, "code", y.code("eve@example.com", ""))
	_, body := v.submit(page, "password", "a long password")
	type identity struct {
		Approved bool
		Scopes   []string
		User     struct{ ID string }
		Account  struct{ Login, Kind, Role, Tier string }
	}
	var me identity
	decode(t, answer{t: t, body: []byte(body)}, &me)
	if me.Approved || strings.Join(me.Scopes, " ") != "read:account" || me.Account.Login != "eve" || me.Account.Kind != "user" ||
		me.Account.Role != "owner" || me.Account.Tier != "free" {
		t.Errorf("a stranger is %+v", me)
	}
	if resp, _ := v.open("GET", y.URL()+"/v1/tasks", ""); resp.StatusCode != 403 {
		t.Errorf("a waitlisted session reads tasks: %s", resp.Status)
	}
	y.send("POST", "/v1/admin/users/"+me.User.ID+"/approve", y.operator(), "").want(200)
	_, body = v.open("GET", y.URL()+"/v1/me", "")
	me = identity{}
	decode(t, answer{t: t, body: []byte(body)}, &me)
	if !me.Approved || len(me.Scopes) != len(policy.Owner.Ceiling().Names()) {
		t.Errorf("let through, they are %+v", me)
	}
}

// On a server that nobody has set up, the waitlist lets nobody in either: the first user
// is made by the address that the server prints, which stays good.
func TestStrangerBeforeTheSetUp(t *testing.T) {
	t.Parallel()
	y := boot(t, db.SQLite, "--waitlist", "on")
	y.send("POST", "/auth/email", "", `{"email": "eve@example.com"}`).want(202)
	y.send("POST", "/auth/email/verify", "", `{"email": "eve@example.com", "code": "`+y.code("eve@example.com", "")+`"}`).
		problem(403, "not-invited")
	enter(y)
}

// Nobody learns from the answers whether an address is anybody's.
func TestMailedCodesTellNothing(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	ask := func(email string) string {
		a := y.send("POST", "/auth/email", "", `{"email": "`+email+`"}`).want(202)
		return strings.ReplaceAll(string(a.body), email, "X")
	}
	known := ask("ada@example.com")
	if unknown := ask("nobody@example.com"); unknown != known {
		t.Errorf("%s\nis told from\n%s", unknown, known)
	}
	code := y.code("ada@example.com", "")
	if mails := y.letters("nobody@example.com"); len(mails) != 0 {
		t.Errorf("a stranger gets %q", mails)
	}
	guess := func(email, code string) answer {
		return y.send("POST", "/auth/email/verify", "", `{"email": "`+email+`", "code": "`+code+`"}`)
	}
	// From the fifth on, each waits for its turn.
	inTurn := func(email, code string) (a answer) {
		patience.Until(y.t, "a guess", func() bool {
			a = guess(email, code)
			return a.StatusCode != 429
		})
		return a
	}
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	a, b := guess("ada@example.com", wrong).problem(401, "wrong-code"), guess("nobody@example.com", wrong).problem(401, "wrong-code")
	if a["detail"] != b["detail"] {
		t.Errorf("%v is told from %v", a, b)
	}
	// The fifth wrong guess ends it for the right one as well.
	for range 4 {
		guess("ada@example.com", wrong).problem(401, "wrong-code")
	}
	guess("ada@example.com", code).problem(429, "rate-limited")
	inTurn("ada@example.com", code).problem(401, "wrong-code")
	// Four more codes within the hour, then no more.
	for range 4 {
		ask("ada@example.com")
		code = y.code("ada@example.com", code)
	}
	ask("ada@example.com")
	inTurn("ADA@example.com", code[:3]+" "+code[3:]).want(200)
	guess("ada@example.com", code).problem(401, "wrong-code")
	if n := len(y.letters("ada@example.com")); n != 5 {
		t.Errorf("%d codes were mailed within an hour", n)
	}
}
