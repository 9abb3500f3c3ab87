package github

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

const mintOperation = "POST /app/installations/{installation_id}/access_tokens"

// watched collects the exchanges of a peer.
type watched struct {
	mu  sync.Mutex
	all []peer.Exchange
}

func (w *watched) add(e peer.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, e)
}

// take returns the exchanges of an operation so far, and forgets all.
func (w *watched) take(operation string) (out []peer.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.all {
		if e.Operation == operation {
			out = append(out, e)
		}
	}
	w.all = nil
	return out
}

// TestTokensAreNarrow holds that a token is for one repository and the permissions of
// the call, is used again, and is renewed before it ends or once it is refused.
func TestTokensAreNarrow(t *testing.T) {
	t.Parallel()
	var seen watched
	w := newWorld(t, peer.Options{Watch: seen.add})
	ctx := t.Context()
	read := func() {
		t.Helper()
		if _, err := w.host.Head(ctx, w.shop, "main"); err != nil {
			t.Fatal(err)
		}
	}
	read()
	read()
	made := seen.take(mintOperation)
	if len(made) != 1 {
		t.Fatalf("made %d tokens", len(made))
	}
	var ask struct {
		IDs         []int64           `json:"repository_ids"`
		Permissions map[string]string `json:"permissions"`
	}
	if err := json.Unmarshal(made[0].Body, &ask); err != nil || len(ask.IDs) != 1 || ask.IDs[0] != w.repo.ID ||
		len(ask.Permissions) != 1 || ask.Permissions["contents"] != "read" {
		t.Errorf("asked for %s", made[0].Body)
	}
	w.peer.Advance(49 * time.Minute)
	read()
	if n := len(seen.take(mintOperation)); n != 0 {
		t.Errorf("made %d tokens with 11 minutes left", n)
	}
	w.peer.Advance(2 * time.Minute)
	read()
	if n := len(seen.take(mintOperation)); n != 1 {
		t.Errorf("made %d tokens with 9 minutes left", n)
	}
	w.inst.Suspend(w.ann, true) // it revokes all tokens
	w.inst.Suspend(w.ann, false)
	read()

	var group sync.WaitGroup
	fresh := w.connect()
	seen.take("")
	for range 8 {
		group.Go(func() {
			if _, err := fresh.Head(ctx, w.shop, "main"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := len(seen.take(mintOperation)); n != 1 {
		t.Errorf("8 callers made %d tokens", n)
	}
}

func TestInstallationsThatEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	ask := func(h *Host) error { _, _, err := h.Issue(ctx, w.shop, 1, ""); return err }
	w.repo.OpenIssue(w.bob, "x", "")
	if err := ask(w.host); err != nil {
		t.Fatal(err)
	}
	w.inst.Suspend(w.ann, true)
	wants(t, "suspended, known", ask(w.host), codehost.ErrGone)
	wants(t, "suspended", ask(w.connect()), codehost.ErrGone)
	w.inst.Suspend(w.ann, false)
	if err := ask(w.host); err != nil {
		t.Errorf("no longer suspended: %v", err)
	}
	w.inst.Remove(w.ann)
	wants(t, "removed, known", ask(w.host), codehost.ErrGone)
	wants(t, "removed", ask(w.connect()), codehost.ErrGone)
	w.inst = w.app.Install(w.org, w.peer.Repo("acme/other", peer.NewRepo{}))
	wants(t, "installed elsewhere", ask(w.host), codehost.ErrGone)
	w.inst.Add(w.ann, w.repo)
	if err := ask(w.host); err != nil {
		t.Errorf("installed again: %v", err)
	}
	w.repo.Archive(w.ann, true)
	_, err := w.host.AddComment(ctx, w.shop, once1, 1, "x")
	wants(t, "archived", err, codehost.ErrGone)
	if err := ask(w.host); err != nil {
		t.Errorf("a read of an archived one: %v", err)
	}
}

func TestPermissionThatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	few := w.peer.NewApp(peer.NewApp{Name: "Few", Permissions: map[string]string{"contents": "read"}})
	few.Install(w.org)
	h := w.connect(func(c *Config) { c.AppID, c.Slug, c.Key = few.ID, few.Slug, []byte(few.PEM()) })
	_, _, err := h.Issue(t.Context(), w.shop, 1, "")
	if f := as[*codehost.ForbiddenError](t, "issues", err); f.Permission != "issues: read, pull_requests: read" {
		t.Errorf("it needs %q", f.Permission)
	}
}

// TestRenamedRepositories holds that a repository is found by its id, by reads and
// writes and git, also when its name is another's by now.
func TestRenamedRepositories(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	issue := w.repo.OpenIssue(w.bob, "x", "")
	w.repo.Rename(w.ann, "store")
	for name, h := range map[string]*Host{"a read": w.connect(), "a write": w.connect(), "git": w.connect()} {
		var err error
		switch name {
		case "a read":
			var info codehost.Info
			info, err = h.Info(ctx, w.shop)
			if info.Repo.String() != "acme/store" || info.Repo.Key() != w.shop.Key() {
				t.Errorf("it is called %s", info.Repo)
			}
		case "a write":
			_, err = h.AddComment(ctx, w.shop, once1, int64(issue.Number), "x")
		case "git":
			_, _, err = h.ReadFile(ctx, w.shop, w.repo.Head("main"), "README.md")
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	another := w.peer.Repo("acme/shop", peer.NewRepo{Files: map[string]string{"README.md": "another\n"}})
	another.OpenIssue(w.bob, "another", "")
	for _, h := range []*Host{w.host, w.connect()} {
		content, _, err := h.ReadFile(ctx, w.shop, "main", "README.md")
		if err != nil || string(content) != "# Shop\n" {
			t.Errorf("its name is another's: %q, %v", content, err)
		}
		if _, err := h.AddComment(ctx, w.shop, once2, int64(issue.Number), "y"); err != nil {
			t.Error(err)
		}
	}
	if n := len(issue.Comments()); n != 2 {
		t.Errorf("it has %d comments", n)
	}
	globex := w.peer.Org("globex")
	w.peer.Person("ann").Join(globex, "admin", false)
	w.app.Install(globex)
	w.repo.Transfer(w.ann, globex)
	w.peer.Advance(2 * time.Minute)
	info, err := w.host.Info(ctx, w.shop)
	if err != nil || info.Repo.Owner != "globex" {
		t.Errorf("transferred: %+v, %v", info, err)
	}
	w.repo.Delete(w.ann)
	if _, err := w.host.Info(ctx, w.shop); err == nil {
		t.Error("it is deleted")
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	w.repo.OpenIssue(w.bob, "x", "")
	for name, c := range map[string]struct {
		fault peer.Fault
		after time.Duration
		limit bool
	}{
		"secondary": {peer.Fault{Effect: peer.Throttle, Delay: 30 * time.Second}, 30 * time.Second, true},
		"unsaid":    {peer.Fault{Effect: peer.Throttle}, time.Minute, true},
		"primary":   {peer.Fault{Effect: peer.Exhaust, Delay: 20 * time.Minute}, 20 * time.Minute, true},
		"502":       {peer.Fault{Effect: peer.Fail}, 0, false},
		"lost":      {peer.Fault{Effect: peer.Lose}, 0, false},
	} {
		c.fault.Operation, c.fault.Times = "GET /repos/{owner}/{repo}/issues/{issue_number}", 1
		if c.fault.Effect == peer.Lose {
			c.fault.Times = 2 // net/http asks again once
		}
		w.peer.Break(c.fault)
		asked := time.Now()
		_, _, err := w.host.Issue(ctx, w.shop, 1, "")
		took := time.Since(asked) // by which the moment that the host has named is nearer
		e := as[*codehost.BusyError](t, name, err)
		if e.Limit != c.limit || e.After < c.after-took-2*time.Second || e.After > c.after+2*time.Second {
			t.Errorf("%s: after %s, limit %v: %v", name, e.After, e.Limit, e)
		}
		w.peer.Mend()
	}
	until := make(chan struct{})
	defer close(until)
	w.peer.Break(peer.Fault{Operation: "GET /repos/{owner}/{repo}/issues/{issue_number}", Effect: peer.Hold, Until: until})
	gone, cancel := context.WithCancel(ctx)
	time.AfterFunc(50*time.Millisecond, cancel)
	_, _, err := w.host.Issue(gone, w.shop, 1, "")
	wants(t, "the caller has gone", err, context.Canceled)
}

// TestCredentialsStay holds that no credential goes to another host, by a redirect, a
// next page or a log.
func TestCredentialsStay(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var stolen []string
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		stolen = append(stolen, r.URL.Path+" "+r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("[]"))
	}))
	t.Cleanup(thief.Close)
	w := newWorld(t, peer.Options{})
	w.host = w.connect(func(c *Config) { c.Transport = &treacherous{c.Transport.(*http.Transport), thief.URL} })
	ctx := t.Context()
	_, _, err := w.host.Issue(ctx, w.shop, 301, "")
	if err == nil {
		t.Error("a redirect of a read was followed")
	}
	if _, err = w.host.AddComment(ctx, w.shop, "", 301, "x"); err == nil {
		t.Error("a redirect of a write was followed")
	}
	if _, _, err = w.host.Milestones(ctx, w.shop, ""); err == nil {
		t.Error("a page of another host was read")
	}
	r, err := w.host.CheckLog(ctx, w.shop, "77", 0) // GitHub keeps logs elsewhere
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	mu.Lock()
	defer mu.Unlock()
	if len(stolen) != 1 || stolen[0] != "/log " {
		t.Errorf("another host heard %q", stolen)
	}
}

// treacherous is a GitHub that sends its callers to another host.
type treacherous struct {
	*http.Transport
	to string
}

// RoundTrip implements http.RoundTripper.
func (x *treacherous) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, body string, header http.Header) (*http.Response, error) {
		w := httptest.NewRecorder()
		for name, v := range header {
			w.Header()[name] = v
		}
		w.WriteHeader(status)
		_, _ = w.WriteString(body)
		resp := w.Result()
		resp.Request = r
		return resp, nil
	}
	switch {
	case strings.HasPrefix(x.to, r.URL.Scheme+"://"+r.URL.Host):
		return x.Transport.RoundTrip(r)
	case strings.Contains(r.URL.Path, "/issues/301"):
		return answer(301, "", http.Header{"Location": {x.to + "/moved"}})
	case strings.HasSuffix(r.URL.Path, "/milestones"):
		return answer(200, "[]", http.Header{"Link": {"<" + x.to + `/page?page=2>; rel="next"`}})
	case strings.HasSuffix(r.URL.Path, "/check-runs/77"):
		return answer(200, `{"id": 77, "app": {"id": 1, "slug": "github-actions"}, "details_url": "https://x/a/b/actions/runs/7/job/77"}`, nil)
	case strings.HasSuffix(r.URL.Path, "/jobs/77/logs"):
		return answer(302, "", http.Header{"Location": {x.to + "/log"}})
	}
	return x.Transport.RoundTrip(r)
}
