package app

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/quota"
	"yardmaster/internal/policy"
)

// quotas are what an account may have and has, by thing; -1: as much as it likes.
func (y *yard) quotas(bearer, path string) (most, used map[string]int64) {
	y.t.Helper()
	var q quota.Quota
	decode(y.t, y.send("GET", path, bearer, "").want(200), &q)
	most, used = map[string]int64{}, map[string]int64{}
	for _, x := range q.Things {
		most[string(x.Name)] = -1
		if x.Most != nil {
			most[string(x.Name)] = *x.Most
		}
		if x.Used != nil {
			used[string(x.Name)] = *x.Used
		}
	}
	return most, used
}

// onDisk is how many bytes the repositories of an owner have.
func (y *yard) onDisk(owner string) (n int64) {
	y.t.Helper()
	err := filepath.WalkDir(filepath.Join(y.cfg.Data, "git", owner), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		y.t.Fatal(err)
	}
	return n
}

// noisy is text that git cannot make shorter than half.
func noisy(seed uint64, n int) string {
	random := rand.New(rand.NewPCG(seed, seed))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%016x\n", random.Uint64())
	}
	return b.String()
}

// enrolls is the answer to a box that the owner lets in.
func (y *yard) enrolls() answer {
	y.t.Helper()
	var enrollment struct{ Token string }
	decode(y.t, y.send("POST", "/v1/runners/enrollments", y.owner, "{}").want(201), &enrollment)
	return y.redeems(enrollment.Token)
}

// redeems is the answer to a box that has a token of enrolment.
func (y *yard) redeems(token string) answer {
	y.t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		y.t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		y.t.Fatal(err)
	}
	return y.send("POST", "/v1/runners/enroll", "", `{"public_key": "`+public+`"}`, "X-Svc-Enroll-Token", token)
}

// An account that may have no more is told so at every door and changes nothing there,
// while the account beside it goes on; an operator lets it go on.
func TestFullAccountBesideAnother(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e, "--rate-limits", "on")
			operator := y.operator()
			rival := y.tenant("rival")
			bob := y.person("bob", rival, policy.Owner)
			beside := y.mint(rival, &bob, policy.Owner.Ceiling(), nil)
			y.push("acme/web", map[string]string{"a": noisy(1, 1<<20)})

			path := "/v1/admin/accounts/" + y.acct + "/quota"
			set := func(body string) {
				t.Helper()
				y.send("PUT", path, operator, `{"confirm": true, `+body+`}`).want(200)
			}
			y.send("PUT", path, y.owner, `{"confirm": true}`).problem(403, "missing-scope")
			y.send("PUT", path, operator, `{"repos": 1}`).problem(400, "invalid")
			y.send("GET", "/v1/admin/accounts/"+bob+"/quota", operator, "").problem(404, "not-found")
			most, used := y.quotas(y.owner, "/v1/account/quota")
			for thing, n := range most {
				if n != -1 {
					t.Errorf("an account of a server of its own may have %d %s", n, thing)
				}
			}
			if n := y.onDisk("acme"); used[quota.GitBytes] != n || n < 1<<19 {
				t.Errorf("%d bytes of git are counted, and there are %d", used[quota.GitBytes], n)
			}

			set(fmt.Sprintf(`"git_bytes": %d, "repos": 2, "boxes": 1, "person_tokens": 3`, used[quota.GitBytes]+1<<19))
			if most, _ := y.quotas(operator, path); most[quota.Repos] != 2 || most[quota.Records] != -1 {
				t.Errorf("an operator sees %v", most)
			}
			refusal := func(repo, text string) string {
				if err := y.tryPush("acme/"+repo, map[string]string{"a": text}); err != nil {
					return err.Error()
				}
				return "none"
			}
			if got := refusal("big", noisy(2, 3<<20)); !strings.Contains(got, "this push does not fit") {
				t.Errorf("a push that does not fit: %s", got)
			}
			if n := y.onDisk("acme"); n > used[quota.GitBytes]+1000 {
				t.Errorf("%d bytes are on the disk after it, and were %d", n, used[quota.GitBytes])
			}
			if got := refusal("second", "a"); got != "none" { // the one that did not fit is none
				t.Errorf("a second repository: %s", got)
			}
			if got := refusal("third", "a"); !strings.Contains(got, "all 2 repositories that it may have") {
				t.Errorf("a third repository: %s", got)
			}
			if first, second := y.enrolls(), y.enrolls(); first.StatusCode != 201 {
				t.Errorf("a box: %s", first.body)
			} else if p := second.problem(507, quota.SlugFull); p["quota"] != quota.Boxes || p["most"] != 1.0 {
				t.Errorf("a box too many: %s", second.body)
			}
			tokens := 0
			for range 4 {
				if a := y.send("POST", "/v1/tokens", y.owner, "{}"); a.StatusCode == 201 {
					tokens++
				} else if p := a.problem(507, quota.SlugFull); p["quota"] != quota.PersonTokens || p["most"] != 3.0 {
					t.Errorf("one token too many: %s", a.body)
				}
			}
			if _, used := y.quotas(y.owner, "/v1/account/quota"); int64(tokens) != 3-1 || used[quota.Tokens] != 3 {
				t.Errorf("%d tokens were minted, and %d are counted", tokens, used[quota.Tokens])
			}

			ask := func(bearer string) answer {
				return y.send("POST", "/v1/asks", bearer, `{"title": "Say hello", "body": "`+strings.Repeat("x", 15000)+`"}`)
			}
			set(`"record_bytes": 1`)
			if p := ask(y.owner).problem(507, quota.SlugFull); p["quota"] != quota.RecordBytes || p["most"] != 1.0 {
				t.Errorf("an ask: %v", p)
			}
			if a := ask(beside); a.StatusCode >= 300 {
				t.Errorf("the account beside it: %d %s", a.StatusCode, a.body)
			}
			y.rig().Eventually("ada hears that the account is full", func() bool {
				return strings.Contains(string(y.send("GET", "/v1/notifications", y.owner, "").body), "nearly full")
			})

			set(`"writes_per_minute": 2`)
			refused := 0
			for range 4 {
				if a := y.send("PUT", "/v1/account/zone", y.owner, `{"zone": "Europe/Berlin"}`); a.StatusCode == 429 {
					refused++
				}
			}
			other := y.mint(y.acct, nil, policy.Owner.Ceiling(), nil)
			if a := y.send("PUT", "/v1/account/zone", other, `{"zone": "UTC"}`); a.StatusCode != 429 || refused == 0 {
				t.Errorf("another credential of the account: %d, and %d were refused", a.StatusCode, refused)
			}
			y.send("PUT", "/v1/account/zone", beside, `{"zone": "UTC"}`).want(200)
			if got := refusal("late", "a"); !strings.Contains(got, "that write, with all credentials of this account") {
				t.Errorf("a push is counted apart: %s", got)
			}

			set(`"git_bytes": null, "repos": null`)
			y.push("acme/third", map[string]string{"a": "a"})
			if a := ask(y.owner); a.StatusCode >= 300 {
				t.Errorf("an ask once an operator has raised it: %d %s", a.StatusCode, a.body)
			}
		})
	}
}
