package app

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	process "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/relay"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/patience"
)

// runToken is the push token of a run of the task that the box has, other than of one run.
func (f *midRun) runToken(not string) (run, token string) {
	f.t.Helper()
	patience.Until(f.t, "the box has a run", func() bool {
		orders, _ := filepath.Glob(filepath.Join(f.places, "*", "runs", "*", "start.json"))
		more, _ := filepath.Glob(filepath.Join(f.places, "*", "*", "runs", "*", "start.json"))
		for _, path := range append(orders, more...) {
			var s struct {
				Run      string `json:"run"`
				GitToken string `json:"git_token"`
			}
			if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &s) == nil && s.Run != not && s.GitToken != "" {
				run, token = s.Run, s.GitToken
			}
		}
		return token != ""
	})
	return run, token
}

// relayed is the path of a repository of the peer at the relay.
func (f *atGitHub) relayed(id int64) string {
	f.t.Helper()
	web, err := url.Parse(f.gh.Web)
	if err != nil {
		f.t.Fatal(err)
	}
	return relay.Path(relayID(codehost.Repo{Host: githubPrefix + web.Host, ID: strconv.FormatInt(id, 10)}))
}

// A run reaches its own repository alone, and pushes to its own branch alone. It goes with
// the token that its requester has bound the repository to, and no longer once somebody
// else steers the work: then with the App's.
func TestGitOfARun(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			f := &midRun{atGitHub: connect(t, e)}
			const read, write = "git-upload-pack", "git-receive-pack"
			other := f.gh.Repo("acme/other", github.NewRepo{Private: true, Files: shopWith(unreviewed)})
			f.inst.Add(f.ann, other)
			patience.Until(f.t, "there is another repository", func() bool { return f.reachable("other") })
			bob := f.gh.Person("bob")
			f.shop.Allow(bob, "write")
			secret := bob.PersonalToken(github.NewToken{Repos: []*github.Repo{f.shop}, Permissions: map[string]string{"contents": "write"}})
			f.send("POST", "/v1/me/github-token", f.owner, `{"token": "`+secret+`"}`).want(200)
			f.send("POST", "/v1/me/repo-bindings", f.owner, `{"repo": "acme/shop"}`).want(200)
			f.setOut()
			defer f.tell()
			first, token := f.runToken("")
			f.advertised(token, read).want(200)
			f.advertised(token, write).want(200)

			ask := func(token string, id int64) answer {
				return f.send("GET", f.relayed(id)+"/info/refs?service="+read, "", "", "Authorization",
					"Basic "+base64.StdEncoding.EncodeToString([]byte("x:"+token)))
			}
			unknown := ask(token, 1<<40).want(404)
			rival := f.mint(f.tenant("rival"), nil, policy.Owner.Ceiling(), nil)
			for name, a := range map[string]answer{
				"another repository of the account": ask(token, other.ID), "the repository, of another account": ask(rival, f.shop.ID),
			} {
				if a.want(404); string(a.body) != string(unknown.body) {
					t.Errorf("%s is told apart: %s", name, a.body)
				}
			}

			f.release()
			f.shop.Issue(f.opened("the pull request is opened").Number).Close(f.ann, "")
			patience.Until(f.t, "the task has failed", func() bool { return f.task().Status == "failed" })
			machine := f.mint(f.acct, nil, policy.Owner.Ceiling(), nil)
			f.send("POST", "/v1/tasks/"+f.taskID+"/redispatch", machine, `{"guidance": "Say it in UTC."}`).want(200)
			_, token = f.runToken(first)
			patience.Until(f.t, "the second agent has begun", func() bool { return len(f.waiting()) > 0 })
			f.shop.Allow(bob, "")
			f.advertised(token, write).want(200)

			remote := strings.Replace(f.URL(), "://", "://x:"+token+"@", 1) + f.relayed(f.shop.ID)
			dir := t.TempDir()
			git := func(ok bool, args ...string) string {
				t.Helper()
				cmd := process.CommandContext(t.Context(), "git", args...)
				cmd.Dir = dir
				cmd.Env = []string{
					"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
					"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com",
				}
				out, err := cmd.CombinedOutput()
				if (err == nil) != ok {
					t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			git(true, "clone", "-q", remote, ".")
			git(true, "commit", "-q", "--allow-empty", "-m", "elsewhere")
			own := f.task().Branch
			for _, ref := range []string{
				"refs/heads/main", "refs/heads/svc/other--01234567", "refs/heads/" + own + "/b", "refs/tags/v1", "refs/pull/1/head",
				"refs/wip/" + first + "/1", "refs/heads/gh-readonly-queue/main/pr-1",
			} {
				if out := git(false, "push", "-f", remote, "HEAD:"+ref); !strings.Contains(out, "may only push to") {
					t.Errorf("%s: %s", ref, out)
				}
			}
			git(true, "push", "-q", "-f", remote, "HEAD:refs/heads/"+own)
			if out := git(false, "push", remote, ":refs/heads/"+own); !strings.Contains(out, "may not delete") {
				t.Error(out)
			}
			if f.shop.Head(own) == "" {
				t.Error("its own branch was not pushed")
			}
			f.send("POST", "/v1/tasks/"+f.taskID+"/cancel", f.owner, "{}").want(200)
			patience.Until(f.t, "the token is worth nothing for the branch", func() bool {
				out := git(false, "push", remote, "HEAD~:refs/heads/"+own, "--force")
				return strings.Contains(out, "may only push to") || strings.Contains(out, "Authentication failed")
			})
		})
	}
}
