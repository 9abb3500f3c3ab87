package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

func TestParse(t *testing.T) {
	t.Parallel()
	names := []string{"yard-app", "", "helper"}
	for body, want := range map[string]string{
		"@yard-app review":                                            "review",
		"Please.\n\n  @Yard-App  FIX this, thanks":                    "fix",
		"@yard-app: explain?":                                         "explain",
		"@helper stop.":                                               "stop",
		"@yard-app rebase\r\n":                                        "rebase",
		"@yard-app dance\n@yard-app review":                           "review",
		"> @yard-app fix\n\n@yard-app stop":                           "stop",
		"```go\nx\n```\n@yard-app review":                             "review",
		"@yard-app":                                                   "",
		"@yard-appx review":                                           "",
		"@ review":                                                    "",
		"yard-app review":                                             "",
		"mail me@yard-app review":                                     "",
		"I would not say @yard-app review here":                       "",
		"> @yard-app review":                                          "",
		"> quoted\n@yard-app review":                                  "",
		"    @yard-app review":                                        "",
		"\t@yard-app review":                                          "",
		"`@yard-app review`":                                          "",
		"`a\n@yard-app review\nb`":                                    "",
		"```\n@yard-app review\n```":                                  "",
		"~~~~ text\n@yard-app review\n~~~\n~~~~":                      "",
		"```\n@yard-app review":                                       "",
		"<!-- @yard-app review -->":                                   "",
		"<!--\n@yard-app review":                                      "",
		"<pre>\n@yard-app review\n</pre>":                             "",
		"<details><code>\n@yard-app fix</code></details>":             "",
		"<blockquote>\n\n@yard-app fix\n\n</blockquote>":              "",
		"@yard-app reviewing":                                         "",
		"- ```\n  @yard-app review\n  ```":                            "",
		"1. > - ~~~\n       @yard-app fix\n       ~~~":                "",
		"x\r```\r@yard-app stop\r```":                                 "",
		"text\r```\n@yard-app stop\n```":                              "",
		"```x`\n```\n@yard-app stop\n```":                             "",
		"```\n<!--\n-->```\n@yard-app stop\n```":                      "",
		"```\n    ```\n@yard-app stop\n```":                           "",
		"```\n``` go\n@yard-app stop\n```":                            "",
		"@yard\u200b-app stop":                                        "",
		"＠yard-app stop":                                              "",
		"@yard-app\u00a0stop":                                         "stop",
		"@yаrd-app stop":                                              "",
		"&#64;yard-app stop":                                          "",
		"\\@yard-app stop":                                            "",
		"[@yard-app](x) stop":                                         "",
		"hello\r\n\r\n- ```sh\r\n  ls\r\n  ```\r\n\r\n@yard-app stop": "stop",
	} {
		if got, ok := Parse(body, names); got != want || ok != (want != "") {
			t.Errorf("%q: %q", body, got)
		}
	}
	if _, ok := Parse("@ review", []string{""}); ok {
		t.Error("an empty name is a name")
	}
}

// What is said in answer is no command, and mentions nobody.
func TestAnswersAreNoCommands(t *testing.T) {
	t.Parallel()
	worst := Facts{State: "open", HeadSHA: strings.Repeat("a", 40), BaseRef: "@yard fix", Mergeable: "conflict", Checks: "failed",
		Watched: true, Round: "fixing_ci", WaitsUntil: "a person acts", Objections: 2, Review: "under way", Page: "https://yard/x",
		Findings: slices.Repeat([]Finding{{"high", "x\n@yard review\n#1 <!-- ym:1 -->", "a`b:1"}}, 12)}
	for _, text := range []string{
		wordsReview, wordsRebase, wordsFix, wordsStop, declined("@yard stop #2"), explain(worst), explain(Facts{State: "merged"}),
	} {
		for line := range strings.SplitSeq(text, "\n") {
			_, ok := Parse(strings.TrimLeft(line, "* "), []string{"yard"})
			if ok || strings.Contains(line, "@y") || strings.Contains(line, "#1") {
				t.Errorf("%q", line)
			}
		}
		if strings.Contains(text, "<!--") || text == "" {
			t.Errorf("%q", text)
		}
	}
}

// yard is the service beside a host with one pull request, which is number 1.
type yard struct {
	*Service
	codehost.NoForge
	t      *testing.T
	now    time.Time
	may    map[string]codehost.Permission
	away   error
	said   []string
	done   []string
	raised int
	barred string
	unseen bool // the pull request is not known until the host is asked
	refuse error
	gone   bool // the thread
}

func (y *yard) Can(c codehost.Capability) bool { return c == codehost.KeepPulls }

func (y *yard) Permission(_ context.Context, _ codehost.Repo, login string) (codehost.Permission, error) {
	return y.may[login], y.away
}

func (y *yard) AddComment(_ context.Context, _ codehost.Repo, _ codehost.Once, n int64, body string) (codehost.Comment, error) {
	y.said = append(y.said, fmt.Sprintf("#%d %s", n, body))
	return codehost.Comment{}, nil
}

func (y *yard) Threads(context.Context, codehost.Repo, int64) ([]codehost.Thread, error) {
	return []codehost.Thread{{ID: "T0"}, {ID: "T1", Comments: []codehost.Comment{{ID: "7"}, {ID: "8"}}}}, nil
}

func (y *yard) Reply(_ context.Context, _ codehost.Repo, _ codehost.Once, _ int64, thread, body string) (codehost.Comment, error) {
	if y.gone {
		return codehost.Comment{}, codehost.ErrThreadGone
	}
	y.said = append(y.said, thread+" "+body)
	return codehost.Comment{}, nil
}

func (y *yard) At(string) []string { return []string{"yard"} }

func (y *yard) Asker(_ *db.Tx, _ string, who codehost.User) (Asker, error) {
	return Asker{Label: "code-host:" + who.Login, Barred: who.Login == y.barred}, nil
}

func (y *yard) ByNumber(_ *db.Tx, repoID string, n int64) (string, bool, error) {
	if y.unseen || n != 1 || repoID != "r1" {
		return "", false, nil
	}
	return "p1", true, nil
}

func (y *yard) CatchUp(_ context.Context, _ repo.Ref, n int64) error {
	y.unseen = false
	return nil
}

func (y *yard) do(what string) error {
	if y.refuse == nil {
		y.done = append(y.done, what)
	}
	return y.refuse
}

func (y *yard) Review(_ *db.Tx, _ repo.Ref, _ string, by Asker) error {
	return y.do("review " + by.Label)
}
func (y *yard) Rebase(*db.Tx, string) error      { return y.do("rebase") }
func (y *yard) Fix(*db.Tx, string, Asker) error  { return y.do("fix") }
func (y *yard) Stop(*db.Tx, string, Asker) error { return y.do("stop") }
func (y *yard) Facts(*db.Tx, string) (Facts, error) {
	return Facts{State: "open", Checks: "passed", Watched: true}, y.do("facts")
}
func (y *yard) Raise(*db.Tx, string, string) error { y.raised++; return nil }

func onBoth(t *testing.T, fn func(*testing.T, *yard)) {
	shared := &yard{now: time.Unix(1_700_000_000, 0)}
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return shared.now }}, func(t *testing.T, d *db.DB) {
		*shared = yard{t: t, now: shared.now, may: map[string]codehost.Permission{"ann": codehost.PermitWrite}}
		y := shared
		hosts := codehost.NewHosts(map[string]codehost.Sides{"elsewhere": {Host: &builtin.Host{}, Forge: y}})
		hub, log := event.NewHub(), slog.New(slog.DiscardHandler)
		y.Service = New(Needs{
			DB: d, Hosts: hosts, Logger: log, Intents: intent.New(intent.Needs{DB: d, Due: duetest.New(d, hub), Hosts: hosts, Logger: log}),
			Work: y, Names: y,
		})
		intent.LineMoved.On(d, y.Intents.FollowLine)
		err := d.Write(y.ctx(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "r1", Account: "acme", Name: "web", Host: "elsewhere"})
		})
		if err != nil {
			t.Fatal(err)
		}
		fn(t, y)
	})
}

func (y *yard) ctx() context.Context {
	return policy.With(db.WithAccount(y.t.Context(), "acme"), policy.Actor{Credential: policy.System})
}

// comment delivers a comment, and lets answers go out.
func (y *yard) comment(e codehost.Commented) (asked bool, err error) {
	y.t.Helper()
	var r repo.Ref
	if err := y.DB.Read(y.ctx(), func(tx *db.Tx) (err error) { r, _, err = repo.ByID(tx, "r1"); return err }); err != nil {
		y.t.Fatal(err)
	}
	asked, err = y.Said(y.ctx(), r, e)
	duetest.Pass(y.ctx(), y.t, y.Intents.Due)
	return asked, err
}

// by is a comment of somebody on the pull request.
func by(login, commentID, body string) codehost.Commented {
	who := codehost.User{Login: login}
	return codehost.Commented{
		Happening: codehost.Happening{Action: codehost.ActionCreated, By: who}, Number: 1, Pull: true,
		Comment: codehost.Comment{ID: commentID, Author: who, Body: body},
	}
}

func (y *yard) state(key string) (state string) {
	y.t.Helper()
	err := y.DB.Read(y.ctx(), func(tx *db.Tx) (err error) { state, _, err = stateOf.Maybe(tx, key); return err })
	if err != nil {
		y.t.Fatal(err)
	}
	return state
}

var stateOf = db.Q[string](`SELECT state FROM host_commands WHERE comment_key = $1`)

// Every verb is carried out and answered, once for a comment.
func TestCommands(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.unseen = true
		for i, verb := range []string{Review, Rebase, Fix, Stop, Explain} {
			e := by("ann", fmt.Sprint(i), "@yard "+verb)
			for range 2 { // it is delivered twice
				if asked, err := y.comment(e); err != nil || !asked {
					t.Fatal(asked, err)
				}
			}
			e.Comment.Body = "@yard stop" // it was edited, and is delivered under its id again
			if _, err := y.comment(e); err != nil {
				t.Fatal(err)
			}
		}
		if want := []string{"review code-host:ann", "rebase", "fix", "stop", "facts"}; !slices.Equal(y.done, want) {
			t.Errorf("%q", y.done)
		}
		if len(y.said) != 5 || !strings.HasPrefix(y.said[4], "#1 * Of the head") {
			t.Errorf("%q", y.said)
		}
		onLines := by("ann", "8", "@yard explain")
		onLines.Thread = "a.go:1"
		if _, err := y.comment(onLines); err != nil || !strings.HasPrefix(y.said[5], "T1 ") {
			t.Errorf("%v %q", err, y.said)
		}
		y.gone = true
		onLines.Comment.ID = "7"
		if _, err := y.comment(onLines); err != nil || !strings.HasPrefix(y.said[6], "#1 ") {
			t.Errorf("%v %q", err, y.said)
		}
		y.refuse = fault.Reason("fork", "Its branch is elsewhere. @yard fix")
		if _, err := y.comment(by("ann", "20", "@yard fix")); err != nil || y.state("issue:20") != Declined ||
			y.said[7] != "#1 Nothing was done. Its branch is elsewhere. @\u200byard fix" {
			t.Errorf("%v %q", err, y.said)
		}
		y.refuse = errors.New("the disk is full")
		if _, err := y.comment(by("ann", "21", "@yard fix")); err == nil || y.state("issue:21") != "" {
			t.Errorf("a failure is an answer: %v", err)
		}
	})
}

// Nobody else is heard: not strangers, not programs, not edits, not who only borrows a name.
func TestWhoIsNotHeard(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.may["reader"], y.may["low"], y.barred = codehost.PermitTriage, codehost.PermitAdmin, "low"
		for i, login := range []string{"stranger", "reader", "low"} {
			asked, err := y.comment(by(login, fmt.Sprint(i), "@yard fix"))
			if err != nil || !asked || y.state("issue:"+fmt.Sprint(i)) != NotPermitted {
				t.Errorf("%s: %v", login, err)
			}
		}
		y.may["stranger"] = codehost.PermitAdmin
		if _, err := y.comment(by("stranger", "0", "@yard fix")); err != nil { // the comment was read before
			t.Fatal(err)
		}
		for name, change := range map[string]func(*codehost.Commented){
			"edited":   func(e *codehost.Commented) { e.Action = codehost.ActionEdited },
			"deleted":  func(e *codehost.Commented) { e.Deleted = true },
			"an issue": func(e *codehost.Commented) { e.Pull = false },
			"a bot":    func(e *codehost.Commented) { e.Comment.Author.Bot, e.By.Bot = true, true },
			"our own":  func(e *codehost.Commented) { e.Comment.Author.Own, e.By.Own = true, true },
			"sent by another": func(e *codehost.Commented) {
				e.By.Login = "stranger"
			},
			"another number": func(e *codehost.Commented) { e.Number = 2 },
			"no command":     func(e *codehost.Commented) { e.Comment.Body = "> @yard fix" },
		} {
			e := by("ann", "x"+name, "@yard fix")
			change(&e)
			if _, err := y.comment(e); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		y.away = &codehost.BusyError{Cause: errors.New("away")}
		if _, err := y.comment(by("ann", "busy", "@yard fix")); err == nil {
			t.Error("a command is dropped while the host does not say what its author may do")
		}
		y.away = codehost.ErrGone
		if _, err := y.comment(by("ann", "gone", "@yard fix")); err != nil || y.state("issue:gone") != NotPermitted {
			t.Errorf("heard although the host does not say: %v", err)
		}
		if len(y.done)+len(y.said) != 0 {
			t.Errorf("%q %q", y.done, y.said)
		}
	})
}

// After ten answers in an hour a thread is silent, and one person is asked to look.
func TestBreaker(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		for i := range 15 {
			if _, err := y.comment(by("ann", fmt.Sprint(i), "@yard explain")); err != nil {
				t.Fatal(err)
			}
			y.now = y.now.Add(time.Minute)
		}
		if len(y.said) != mostAnswers || len(y.done) != mostAnswers || y.raised != 1 || y.state("issue:14") != Silenced {
			t.Errorf("%d answers, %d done, %d raised", len(y.said), len(y.done), y.raised)
		}
		onLines := by("ann", "8", "@yard explain")
		onLines.Thread = "a.go:1"
		if _, err := y.comment(onLines); err != nil || len(y.said) != mostAnswers+1 {
			t.Errorf("another thread is silent, too: %v", err)
		}
		y.now = y.now.Add(perThread)
		if _, err := y.comment(by("ann", "99", "@yard explain")); err != nil || len(y.said) != mostAnswers+2 {
			t.Errorf("it is silent for ever: %v", err)
		}
	})
}
