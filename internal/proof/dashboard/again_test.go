//go:build !race

package dashboard_test

import (
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// says is what a page has to say.
type says struct{ heading, text string }

// form is a form that two tabs have open.
type form struct {
	name, path string
	guest      bool
	press      func(*browser.Tab)
	first      says // the answer of the tab that is faster
	second     says // of the other one
	after      says // what is at the address afterwards
}

// twice has both tabs send a form, and holds each page that follows.
func twice(one *browser.Tab, f form) {
	one.T.Helper()
	other := one.Another()
	one.Go(f.path)
	other.Go(f.path)
	hold := func(b *browser.Tab, which string, s says) {
		one.T.Helper()
		b.See(s.text)
		standing(b, face{f.name + " " + which, "", s.heading, f.guest})
	}
	f.press(one)
	hold(one, "answered", f.first)
	f.press(other)
	hold(other, "answered twice", f.second)
	other.Go(f.path)
	hold(other, "afterwards", f.after)
}

// pressMain presses the main button of a page.
func pressMain(b *browser.Tab) {
	b.T.Helper()
	b.Click("main form button.main")
}

// The first visit makes the first user once: its page says what was made and what comes
// next. Whoever had the form open, too, learns that it is over.
func TestSetUpIsOver(t *testing.T) {
	t.Parallel()
	y := fresh(t)
	one := browser.Open(t, y.URL, 1280, 720)
	one.Go("/")
	one.See("Nobody can sign in, since it has no user.")
	standing(one, face{"not set up", "/", "This server is not set up yet", true})
	twice(one, form{
		name: "setup", path: "/setup/" + y.Setup,
		press: func(b *browser.Tab) {
			b.Fill("Your login", "ada")
			b.Fill("E-mail", "ada@example.com")
			b.Fill("Password", rig.Password)
			b.Fill("Account", "acme")
			b.Click("main form button.main")
		},
		first:  says{"Yardmaster is set up", "You are ada, owner of acme."},
		second: says{"This address is not good", "It works once."},
		after:  says{"This address is not good", "It works once."},
	})
	one.Button("Go on in the browser")
	one.Until("the dashboard", `document.querySelector("#app main h1")?.innerText === "Home"`)
	if me := browser.Eval[string](one, `fetch("/v1/me").then(r => r.json()).then(me => me.user.login + " " + me.account.login + " " + me.account.role)`); me != "ada acme owner" {
		t.Errorf("who has set it up is %s", me)
	}
}

// Whoever answers a form that was answered learns what has become of it, and changes
// nothing: the link of a mail, the form of a blocker, an invitation, the code of a command
// line, the end of some mails, and their new address.
func TestFormsAnsweredTwice(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	y := start(t, "--data", data)
	letters := post{y, mail.Folder{Dir: filepath.Join(data, "mail")}}
	y.repo()
	y.box()
	task := y.task("Say hello", "Say hello in hello.txt.")
	y.status(task, "awaiting_review")
	asks := y.task("Needs a key", "Nothing to do.")
	y.Block(asks, "missing_credential", map[string]string{"DEPLOY_KEY": "env_secret", "API": "service_url"})
	y.call("POST", "/v1/email-routes", `{"address": "team@example.com", "kinds": ["escalation", "task_failed"]}`)
	var fix, blocker string
	patience.Until(y.T, "a blocker with a link", func() bool {
		rows, _ := y.call("GET", "/v1/blockers", "")["data"].([]any)
		if len(rows) > 0 {
			row, _ := rows[0].(map[string]any)
			fix, _ = row["fix_url"].(string)
			blocker, _ = row["id"].(string)
		}
		return fix != ""
	})
	guest := browser.Open(t, y.URL, 1280, 720)
	twice(guest, form{
		name: "link of a mail", path: letters.find("ada@example.com", `(?m)^https?://[^/]+(/actions/\S+)$`), guest: true, press: pressMain,
		first:  says{"Approved", "Head "},
		second: says{"This cannot go on", "This link was used before, and works once."},
		after:  says{"Nothing to decide", "This link was used before, and works once."},
	})
	y.status(task, "merged")
	twice(guest, form{
		name: "end of mails", path: letters.find("ada@example.com", `(/unsubscribe\?token=\S+)`), guest: true, press: pressMain,
		first:  says{"No more of these mails", "You get no more mails of the kind"},
		second: says{"No more of these mails", "You get no more mails of the kind"},
		after:  says{"Get no more of these mails?", "All else stays as it is."},
	})
	twice(guest, form{
		name: "address of mails", path: letters.find("team@example.com", `(?m)^https?://[^/]+(/email-route/confirm\?token=\S+)$`), guest: true,
		press:  pressMain,
		first:  says{"Notices come here", "come to team@example.com from now on."},
		second: says{"Notices come here", "come to team@example.com from now on."},
		after:  says{"Shall notices come here?", "If you do nothing, nothing is sent."},
	})

	// The first tab answers a part. The second one answers that part again, which is
	// refused, and the rest; then there is nothing left for the first.
	one, other := guest, guest.Another()
	for _, b := range []*browser.Tab{one, other} {
		b.Go(strings.TrimPrefix(fix, y.URL))
		b.Fill("Secret", "of the "+map[bool]string{true: "first", false: "second"}[b == one])
	}
	pressMain(one)
	one.See("Kept: DEPLOY_KEY. It cannot be read back.")
	standing(one, face{"blocker answered in part", "", "An agent needs something of you", true})
	other.Fill("Address", "https://api.example.com")
	pressMain(other)
	other.See("DEPLOY_KEY has its value already.")
	other.See("Kept: API.")
	standing(other, face{"blocker answered twice", "", "Thank you", true})
	one.Fill("Address", "https://elsewhere.example.com")
	pressMain(one)
	one.See("The blocker is closed.")
	standing(one, face{"blocker that is closed", "", "This cannot go on", true})
	if b := y.call("GET", "/v1/blockers/"+blocker, ""); b["state"] != "submitted" {
		t.Errorf("the blocker is %v", b)
	}

	ada := y.open(1280, 720)
	ada.Complaints()
	code, _ := y.call("POST", "/auth/device", `{"client_name": "command line on bench"}`)["user_code"].(string)
	twice(ada, form{
		name: "code of a command line", path: "/device?user_code=" + code, press: func(b *browser.Tab) { b.Button("Authorize") },
		first:  says{"Signed in", "The command line goes on by itself."},
		second: says{"This cannot go on", "This command line was decided on before"},
		after:  says{"Sign in a command line", "Nothing waits with this code."},
	})
	y.bobIsInvitedTwice(letters)
}

// bobIsInvitedTwice has bob join acme, by a code that is mailed to him, and then another
// organisation from two tabs.
func (y *yard) bobIsInvitedTwice(letters post) {
	y.T.Helper()
	link, _ := y.call("POST", "/v1/org/members", `{"email": "bob@example.com", "role": "member"}`)["link"].(string)
	bob := browser.Open(y.T, y.URL, 1280, 720)
	bob.Go(strings.TrimPrefix(link, y.URL))
	bob.Button("Make a code and accept")
	bob.Fill("Code", letters.find("bob@example.com", `(?m)\b(\d{6})\b`))
	bob.Press("Enter")
	bob.Fill("New password", "a long password of bob") // nothing else would let him in again
	bob.Press("Enter")
	bob.See("It was accepted.")

	globex := id.New()
	y.Write(globex, func(tx *db.Tx) error { return seed.Account{ID: globex, Login: "globex", Seats: 9}.Add(tx) })
	y.Write(globex, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Member{Account: globex, User: y.User, Role: string(policy.Owner)})
	})
	owner := y.Mint(policy.PAT, globex, y.User, policy.Owner.Ceiling(), nil)
	resp, body := y.Send("POST", "/v1/org/members", owner, `{"email": "bob@example.com", "role": "member"}`)
	_, rest, ok := strings.Cut(string(body), `/invite/`)
	if resp.StatusCode >= 300 || !ok {
		y.T.Fatalf("invite bob: %d %s", resp.StatusCode, body)
	}
	token, _, _ := strings.Cut(rest, `"`)
	twice(bob, form{
		name: "invitation", path: "/invite/" + token, press: pressMain,
		first:  says{"An invitation to globex", "It was accepted."},
		second: says{"An invitation to globex", "It was accepted."},
		after:  says{"An invitation to globex", "It was accepted."},
	})
	if _, body := y.Send("GET", "/v1/org/members", owner, ""); strings.Count(string(body), `"login":"bob"`) != 1 {
		y.T.Errorf("the members are %s", body)
	}
}
