package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// yard is a running control plane with one owner, ada of acme.
type yard struct {
	*app.App
	*rig.Yard
}

// boot runs a control plane that nobody has set up, until the test ends.
func boot(t *testing.T, e db.Engine, flags ...string) *yard {
	t.Helper()
	y := new(yard)
	y.Yard = rig.Boot(t, e, rig.Log(t), func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return app.Run(ctx, cfg, app.Options{Version: "test", Logger: log, Ready: func(a *app.App) {
			y.App = a
			in := a.Inside()
			ready(rig.Plane{URL: a.URL(), DB: in.DB, Tasks: in.Tasks, Blockers: in.Blockers})
		}})
	}, flags...)
	return y
}

// start is boot, and what the first-boot page does.
func start(t *testing.T, e db.Engine, flags ...string) *yard {
	t.Helper()
	y := boot(t, e, flags...)
	y.Enter()
	return y
}

// answer is a response, read to its end.
type answer struct {
	*http.Response
	body []byte
}

// send is Send.
func (y *yard) send(method, target, bearer, body string, header ...string) answer {
	y.T.Helper()
	resp, text := y.Send(method, target, bearer, body, header...)
	return answer{resp, text}
}

// hear is Hear.
func (y *yard) hear(target, bearer string, header []string, enough func(answer) bool) answer {
	y.T.Helper()
	resp, text := y.Hear(target, bearer, header, func(resp *http.Response, text []byte) bool { return enough(answer{resp, text}) })
	return answer{resp, text}
}

// person makes a user with an account of their own, and a role in acme if one
// is given. They act in that of the two.
func (y *yard) person(login string, role ...string) (userID, bearer string) {
	y.T.Helper()
	userID, account := id.New(), id.New()
	rows := []seed.Row{
		seed.Account{ID: account, Login: login}, seed.User{ID: userID, Login: login},
		seed.Member{Account: account, User: userID, Role: string(policy.Owner)},
	}
	if len(role) > 0 {
		rows = append(rows, seed.Member{Account: y.Account, User: userID, Role: role[0]})
	}
	y.Write(account, func(tx *db.Tx) error { return seed.Add(tx, rows...) })
	if len(role) > 0 {
		account = y.Account
	}
	return userID, y.Mint(policy.PAT, account, userID, policy.Owner.Ceiling(), nil)
}

// public makes a repository public, which no repository of the built-in host is.
func (y *yard) public(name string) {
	y.T.Helper()
	owner, short, _ := strings.Cut(name, "/")
	y.Write(y.Account, func(tx *db.Tx) error {
		r, _, err := repo.ByName(tx, owner, short)
		if err == nil {
			_, err = seed.SetPrivate.Exec(tx, r.ID, false)
		}
		return err
	})
}

// issue puts in an issue of a repository, as a code host would tell of one, and answers
// its id.
func (y *yard) issue(name, number string) (issueID string) {
	y.T.Helper()
	owner, short, _ := strings.Cut(name, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		y.T.Fatal(err)
	}
	issueID = id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		r, _, err := repo.ByName(tx, owner, short)
		if err != nil {
			return err
		}
		return seed.Add(tx, seed.Issue{ID: issueID, Account: y.Account, Repo: r.ID, Number: n})
	})
	return issueID
}

// digest puts in a digest of a date, in which nothing happened.
func (y *yard) digest(period string) (digestID string) {
	y.T.Helper()
	digestID = id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Digest{ID: digestID, Account: y.Account, Period: period})
	})
	return digestID
}

// fail ends a task for good.
func (y *yard) fail(taskID, kind string) {
	y.T.Helper()
	y.OnTask(taskID, func(tx *db.Tx, t *task.Row) error { return y.Tasks.Fail(tx, t, kind, "Failed by a test.") })
}

// mailedLinks are the addresses of the two links of a mail that asks about a merge.
var mailedLinks = regexp.MustCompile(`(?m)^https?://\S+/actions/(\S+)$`)

// links waits for a mail to an address that asks about a merge, another one than
// before, and answers the tokens of its links.
func (y *yard) links(to, before string) (approve, skip string) {
	y.T.Helper()
	y.Eventually("a question is mailed to "+to, func() bool {
		all, err := mail.Folder{Dir: filepath.Join(y.Inside().Data, "mail")}.List()
		if err != nil {
			y.T.Fatal(err)
		}
		for _, l := range all {
			if found := mailedLinks.FindAllStringSubmatch(l.Text, -1); l.To == to && len(found) == 2 {
				approve, skip = found[0][1], found[1][1]
			}
		}
		return approve != "" && approve != before
	})
	return approve, skip
}

// unsubscribe waits for a mail to an address that has a link to end mails of its kind,
// and answers its token.
func (y *yard) unsubscribe(to string) (token string) {
	y.T.Helper()
	y.Eventually("a mail with a link to unsubscribe goes to "+to, func() bool {
		all, err := mail.Folder{Dir: filepath.Join(y.Inside().Data, "mail")}.List()
		if err != nil {
			y.T.Fatal(err)
		}
		for _, l := range all {
			if _, after, ok := strings.Cut(l.Unsubscribe, "?token="); l.To == to && ok {
				token = after
			}
		}
		return token != ""
	})
	return token
}

var confirmLink = regexp.MustCompile(`(?m)^https?://\S+/email-route/confirm\?token=(\S+)$`)

// confirm waits for a mail to an address that asks whether notices shall come there, and
// answers the token of its link.
func (y *yard) confirm(to string) (token string) {
	y.T.Helper()
	y.Eventually("a question about notices is mailed to "+to, func() bool {
		all, err := mail.Folder{Dir: filepath.Join(y.Inside().Data, "mail")}.List()
		if err != nil {
			y.T.Fatal(err)
		}
		for _, l := range all {
			if found := confirmLink.FindStringSubmatch(l.Text); l.To == to && found != nil {
				token = found[1]
			}
		}
		return token != ""
	})
	return token
}

var mailedCode = regexp.MustCompile(`(?m)^ {4}([0-9]{6})$`)

// code waits for a code that is mailed to an address, another one than before.
func (y *yard) code(to, before string) (code string) {
	y.T.Helper()
	y.Eventually("a code is mailed to "+to, func() bool {
		all, err := mail.Folder{Dir: filepath.Join(y.Inside().Data, "mail")}.List()
		if err != nil {
			y.T.Fatal(err)
		}
		for _, l := range all {
			if found := mailedCode.FindStringSubmatch(l.Text); l.To == to && found != nil {
				code = found[1]
			}
		}
		return code != "" && code != before
	})
	return code
}

// visit opens a page elsewhere that sends us back here, and returns the query
// it brings.
func (y *yard) visit(address string) (query string) {
	y.T.Helper()
	resp, err := rig.Plain.Get(address)
	if err != nil {
		y.T.Fatal(err)
	}
	resp.Body.Close()
	at, err := resp.Location()
	if err != nil || !strings.HasPrefix(at.String(), y.URL()+"/") {
		y.T.Fatalf("%s sends us to %v, %v", address, at, err)
	}
	return at.RawQuery
}

// indented is JSON for people.
func indented(b []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}
