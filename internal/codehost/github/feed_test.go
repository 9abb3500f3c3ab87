package github

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

// mail collects the deliveries of a peer as they are made.
type mail struct {
	mu  sync.Mutex
	all []letter
}

type letter struct {
	header http.Header
	body   []byte
}

func (m *mail) add(_, _ string, header http.Header, body []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, letter{header.Clone(), slices.Clone(body)})
}

func (m *mail) take() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.all
	m.all = nil
	return out
}

func TestAccept(t *testing.T) {
	t.Parallel()
	var in mail
	w := newWorld(t, peer.Options{WatchDelivery: in.add}, func(c *Config) { c.Secrets = []string{"new", "hush", ""} })
	in.take()
	w.repo.OpenIssue(w.bob, "x", "")
	l := in.take()[0]
	good, err := w.host.Accept(l.header.Get, l.body)
	if err != nil || good.Kind != "issues" || good.GUID == "" || good.Host != hostName || string(good.Body) != string(l.body) {
		t.Fatalf("%+v, %v", good, err)
	}
	sign := func(h http.Header, secret string) { h.Set("X-Hub-Signature-256", peer.Signature(secret, l.body)) }
	for name, c := range map[string]struct {
		change func(h http.Header)
		body   string
		want   error
	}{
		"another body":         {func(http.Header) {}, string(l.body) + " ", codehost.ErrForged},
		"no signature":         {func(h http.Header) { h.Del("X-Hub-Signature-256") }, "", codehost.ErrForged},
		"another secret":       {func(h http.Header) { sign(h, "guess") }, "", codehost.ErrForged},
		"the empty secret":     {func(h http.Header) { sign(h, "") }, "", codehost.ErrForged},
		"another App":          {func(h http.Header) { h.Set("X-GitHub-Hook-Installation-Target-ID", "1") }, "", codehost.ErrForeign},
		"an Enterprise Server": {func(h http.Header) { h.Set("X-GitHub-Enterprise-Host", "ghe.corp") }, "", codehost.ErrForeign},
		"a strange id":         {func(h http.Header) { h.Set("X-GitHub-Delivery", "a b") }, "", codehost.ErrForged},
		"no kind":              {func(h http.Header) { h.Del("X-GitHub-Event") }, "", codehost.ErrForged},
	} {
		h := l.header.Clone()
		c.change(h)
		body := l.body
		if c.body != "" {
			body = []byte(c.body)
		}
		_, err := w.host.Accept(h.Get, body)
		wants(t, name, err, c.want)
	}
	for _, kind := range []string{"projects_v2", "projects_v2_item", "projects_v2_status_update"} {
		h := l.header.Clone()
		h.Set("X-GitHub-Event", kind)
		if d, err := w.host.Accept(h.Get, l.body); err != nil || d.Kind != kind {
			t.Errorf("%s: %+v, %v", kind, d, err)
		}
	}
	h := l.header.Clone()
	h.Set("X-Hub-Signature-256", peer.Signature("new", l.body))
	if _, err := w.host.Accept(h.Get, l.body); err != nil {
		t.Errorf("the new secret: %v", err)
	}
}

// TestEvents holds what each kind of delivery tells: everything that people do at the
// peer is accepted and translated.
func TestEvents(t *testing.T) {
	t.Parallel()
	var in mail
	w := newWorld(t, peer.Options{WatchDelivery: in.add})
	told := func() []string {
		t.Helper()
		var out []string
		for _, l := range in.take() {
			if l.header.Get("X-GitHub-Hook-Installation-Target-ID") != number(w.app.ID) {
				continue
			}
			d, err := w.host.Accept(l.header.Get, l.body)
			if err != nil {
				t.Errorf("accept %s: %v", l.header.Get("X-GitHub-Event"), err)
				continue
			}
			events, err := w.host.Events(d)
			if err != nil {
				t.Errorf("translate %s: %v", d.Kind, err)
			}
			for _, e := range events {
				out = append(out, w.brief(e))
			}
		}
		return out
	}
	check := func(what string, want ...string) {
		t.Helper()
		got := told()
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got  %q\n want %q", what, got, want)
		}
	}
	told() // the installation, among others
	number1 := w.repo.OpenIssue(w.bob, "x", "")
	check("an issue", "IssueChanged other #1 open by bob")
	number1.Comment(w.app.Bot, "hello")
	check("our comment", "Commented created #1 hello by yard-master[bot] own")
	number1.Close(w.ann, "completed")
	check("closed", "IssueChanged other #1 closed by ann")
	number1.Label(w.ann, "bug")
	check("a label", "IssueChanged labeled #1 closed with bug by ann")
	w.repo.NewMilestone(w.ann, "v1")
	check("a milestone", "MilestoneChanged created by ann")

	before := w.repo.Head("main")
	w.repo.Push(w.bob, "svc/a", before)
	check("a new branch", "PushedEvent refs/heads/svc/a 0000000 "+before[:7]+" by bob", "ChecksChanged other "+before[:7]+" by bob")
	head := w.repo.Commit(w.bob, "svc/a", "a", map[string]string{"cart.go": numbered(30, 5)})
	check("a push", "PushedEvent refs/heads/svc/a "+before[:7]+" "+head[:7]+" by bob", "ChecksChanged other "+head[:7]+" by bob")
	pull := w.repo.OpenPull(w.bob, peer.NewPull{Head: "svc/a", Title: "A"})
	check("a pull request", "PullChanged other #2 open "+head[:7]+" by bob")
	if _, err := pull.Review(w.ann, peer.NewReview{
		Event: "REQUEST_CHANGES", Body: "no", Comments: []peer.NewComment{{Path: "cart.go", Line: 5, Body: "why"}},
	}); err != nil {
		t.Fatal(err)
	}
	check("a review", "ReviewPosted submitted #2 changes_requested "+head[:7]+" by ann", "Commented created #2 why at cart.go:5 by ann")
	first := pull.Threads()[0][0].ID
	pull.Resolve(w.ann, first, true)
	check("a thread", "ThreadChanged other #2 true by ann")
	run := w.repo.Check(w.app, head, "yardmaster/review", "failure")
	_ = run
	told()
	w.repo.Rerequest(w.bob, w.repo.Checks(head)[0].ID)
	check("asked to run again", "ChecksChanged other "+head[:7]+" yardmaster/review by bob",
		"CheckRequested other "+head[:7]+" yardmaster/review by bob")
	w.repo.RerequestSuite(w.bob, w.app, head)
	check("asked to run all again", "ChecksChanged other "+head[:7]+" by bob", "CheckRequested other "+head[:7]+"  by bob")
	w.repo.Status(w.bob, head, "deploy", "success")
	check("a status", "ChecksChanged other "+head[:7]+" by bob")
	pull.Merge(w.ann, "merge")
	if got := told(); !slices.Contains(got, "PullChanged other #2 merged "+head[:7]+" by ann") {
		t.Errorf("merged: %q", got)
	}
	w.repo.Rules(w.ann, peer.Ruleset{Name: "main", Queue: &peer.QueueRule{}})
	if got := told(); !slices.Contains(got, "RulesChanged created by ann") {
		t.Errorf("rules: %q", got)
	}
	queued := w.pull("svc/b", map[string]string{"b": "b\n"})
	told()
	queued.Enqueue(w.ann)
	if got := told(); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "QueueChanged grouped main") }) {
		t.Errorf("the queue: %q", got)
	}
	w.repo.Rename(w.ann, "store")
	check("renamed", "RepoEvent other acme/store was acme/shop by ann")
	w.repo.Archive(w.ann, true)
	check("archived", "RepoEvent other acme/store archived by ann")
	w.repo.Archive(w.ann, false)
	told()
	w.inst.Suspend(w.ann, true)
	check("suspended", "InstallationEvent other acme Organization suspended by ann")
	w.inst.Suspend(w.ann, false)
	if got := told(); len(got) != 1 || !strings.HasPrefix(got[0], "InstallationEvent other acme") {
		t.Errorf("unsuspended: %q", got)
	}
	w.inst.Remove(w.ann)
	if got := told(); len(got) != 1 || !strings.HasPrefix(got[0], "InstallationEvent deleted acme Organization gone") {
		t.Errorf("removed: %q", got)
	}
	inst := w.app.Install(w.org, w.repo)
	check("installed", "InstallationEvent created acme Organization chosen +acme/store by ann")
	other := w.peer.Repo("acme/other", peer.NewRepo{})
	told()
	inst.Add(w.ann, other)
	check("added", "InstallationEvent other acme Organization chosen +acme/other by ann")
	inst.Drop(w.ann, other)
	check("dropped", "InstallationEvent other acme Organization chosen -acme/other by ann")
	w.repo.Delete(w.ann)
	if got := told(); !slices.Contains(got, "RepoEvent deleted acme/store gone by ann") {
		t.Errorf("deleted: %q", got)
	}
}

// brief is an event in a line.
func (w *world) brief(e codehost.Event) string {
	about := e.About()
	kind := reflect.TypeOf(e).Name()
	text := ""
	switch e := e.(type) {
	case codehost.IssueChanged:
		text = fmt.Sprintf("#%d %s", e.Issue.Number, map[bool]string{true: "open", false: "closed"}[e.Issue.Open])
		if e.Label != "" {
			text += " with " + e.Label
		}
		if about.At.IsZero() {
			text += " at no time"
		}
	case codehost.Commented:
		text = fmt.Sprintf("#%d %s", e.Number, e.Comment.Body)
		if e.Thread != "" {
			text += " at " + e.Thread
		}
	case codehost.PushedEvent:
		return fmt.Sprintf("%s %s %.7s %.7s by %s", kind, e.Updates[0].Ref, e.Updates[0].Old, e.Updates[0].New, about.By.Login)
	case codehost.ChecksChanged:
		if text = e.SHA[:7]; e.Check != nil {
			text += " " + e.Check.Name
		}
	case codehost.CheckRequested:
		text = e.SHA[:7] + " " + e.Name
	case codehost.PullChanged:
		text = fmt.Sprintf("#%d open %.7s", e.Pull.Number, e.Pull.HeadSHA)
		if e.Pull.Merged {
			text = strings.Replace(text, "open", "merged", 1)
		}
	case codehost.ReviewPosted:
		text = fmt.Sprintf("#%d %s %.7s", e.Number, e.Review.State, e.Review.HeadSHA)
	case codehost.ThreadChanged:
		text = fmt.Sprintf("#%d %v", e.Number, e.Thread.Resolved)
	case codehost.QueueChanged:
		text = e.BaseRef + " " + e.HeadSHA[:7]
	case codehost.RepoEvent:
		text = e.Info.Repo.String()
		if e.Was != "" {
			text += " was " + e.Was
		}
		if e.Info.Archived {
			text += " archived"
		}
		if e.Gone {
			text += " gone"
		}
	case codehost.InstallationEvent:
		text = e.Installation.Owner.Login + " " + e.Installation.OwnerKind
		for _, flag := range []struct {
			name string
			on   bool
		}{{" suspended", e.Installation.Suspended}, {" gone", e.Installation.Gone}, {" chosen", e.Installation.Chosen}} {
			if flag.on {
				text += flag.name
			}
		}
		for _, r := range e.Added {
			text += " +" + r.Repo.String()
		}
		for _, r := range e.Removed {
			text += " -" + r.String()
		}
	case codehost.MilestoneChanged, codehost.RulesChanged:
		return fmt.Sprintf("%s %s by %s", kind, about.Action, about.By.Login)
	}
	if own := about.By.Own; own {
		about.By.Login += " own"
	}
	return fmt.Sprintf("%s %s %s by %s", kind, about.Action, text, about.By.Login)
}

func TestInstallations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	for i := range 120 {
		w.app.Install(w.peer.Person(fmt.Sprintf("person-%d", i)))
		w.peer.Repo(fmt.Sprintf("acme/repo-%d", i), peer.NewRepo{})
	}
	w.inst.Suspend(w.ann, true)
	seen := map[string]codehost.Installation{}
	cursor, n := "", 0
	for {
		found, next, err := w.host.Installations(ctx, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range found {
			seen[i.Owner.Login] = i
		}
		n++
		if cursor = next; cursor == "" {
			break
		}
	}
	acme := seen["acme"]
	if len(seen) != 121 || n != 2 || !acme.Suspended || acme.OwnerKind != "Organization" || acme.Permissions["issues"] != "write" {
		t.Errorf("%d installations in %d pages, %+v", len(seen), n, acme)
	}
	w.inst.Suspend(w.ann, false)
	repos := map[string]bool{}
	for cursor = ""; ; {
		found, next, err := w.host.InstalledRepos(ctx, acme.ID, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			repos[r.Repo.String()] = r.DefaultBranch == "main" && r.OwnerID != ""
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if len(repos) != 121 || !repos["acme/shop"] {
		t.Errorf("%d repositories", len(repos))
	}
	w.inst.Remove(w.ann)
	for _, id := range []string{acme.ID, "999999", "x"} {
		_, _, err := w.host.InstalledRepos(ctx, id, "")
		wants(t, "installation "+id, err, codehost.ErrNotInstallable)
	}
}

// TestChanged holds that a sweep finds what deliveries have missed, and costs nothing
// where nothing has changed.
func TestChanged(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	w := newWorld(t, peer.Options{Now: func() time.Time { return start }})
	ctx := t.Context()
	w.repo.OpenIssue(w.bob, "old", "")
	var m codehost.Marks
	sweep := func() (out []string) {
		t.Helper()
		for range 2 {
			now, events, err := w.host.Changed(ctx, w.shop, m)
			if err != nil {
				t.Fatal(err)
			}
			m = now
			for _, e := range events {
				if p, ok := e.(codehost.PushedEvent); ok && len(p.Updates) == 0 {
					out = append(out, "pushed")
					continue
				}
				out = append(out, w.brief(e))
			}
		}
		return out
	}
	if got := sweep(); !slices.Equal(got, []string{"RepoEvent  acme/shop by ", "pushed"}) {
		t.Errorf("at first: %q", got)
	}
	sweep()
	used := w.inst.Used()
	if got := sweep(); len(got) != 0 || w.inst.Used() != used {
		t.Errorf("nothing has changed: %q, %d requests counted", got, w.inst.Used()-used)
	}
	w.peer.Advance(time.Minute)
	pull := w.pull("svc/a", map[string]string{"a": "a\n"})
	got := sweep()
	if !slices.Contains(got, fmt.Sprintf("IssueChanged  #%d open by ", pull.Number)) ||
		!slices.Contains(got, fmt.Sprintf("PullChanged  #%d open %.7s by ", pull.Number, pull.Head())) || !slices.Contains(got, "pushed") {
		t.Errorf("a pull request: %q", got)
	}
	w.repo.Rename(w.ann, "store")
	if got := sweep(); !slices.Contains(got, "RepoEvent  acme/store was acme/shop by ") {
		t.Errorf("renamed: %q", got)
	}
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{}) // nobody listens at the App's address
	ctx := t.Context()
	settle := func() {
		t.Helper()
		if err := w.peer.Settle(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.repo.OpenIssue(w.bob, "x", "")
	settle()
	failed := len(w.app.Deliveries())
	if failed == 0 {
		t.Fatal("nothing has failed")
	}
	since := w.peer.Now().Add(-time.Hour)
	asked, err := w.host.Redeliver(ctx, since)
	settle()
	if err != nil || asked != failed || len(w.app.Deliveries()) != 2*failed {
		t.Errorf("asked %d times for %d, %v; there are %d", asked, failed, err, len(w.app.Deliveries()))
	}
	if again, err := w.host.Redeliver(ctx, since); err != nil || again != 0 {
		t.Errorf("asked again %d times, %v", again, err)
	}
	w.peer.Advance(2 * time.Hour)
	w.repo.OpenIssue(w.bob, "y", "")
	settle()
	if asked, err := w.host.Redeliver(ctx, w.peer.Now().Add(-time.Hour)); err != nil || asked != 1 {
		t.Errorf("of the last hour: %d, %v", asked, err)
	}
}

// withoutIssues is a GitHub whose repositories have no issues.
type withoutIssues struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (x withoutIssues) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/issues") {
		return x.RoundTripper.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	w.WriteHeader(http.StatusGone)
	_, _ = w.WriteString(`{"message": "Issues has been disabled in this repository."}`)
	return w.Result(), nil
}

// TestChangedWithoutIssues holds that a sweep finds pull requests where issues are off.
func TestChangedWithoutIssues(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	w := newWorld(t, peer.Options{Now: func() time.Time { return start }}, func(c *Config) { c.Transport = withoutIssues{c.Transport} })
	ctx := t.Context()
	w.pull("svc/a", map[string]string{"a": "a\n"})
	w.peer.Advance(time.Minute)
	var m codehost.Marks
	sweep := func() (out []string) {
		t.Helper()
		for range 2 {
			now, events, err := w.host.Changed(ctx, w.shop, m)
			if err != nil {
				t.Fatal(err)
			}
			for m = now; len(events) > 0; events = events[1:] {
				if p, is := events[0].(codehost.PullChanged); is {
					out = append(out, fmt.Sprintf("#%d", p.Pull.Number))
				}
			}
		}
		return out
	}
	if got := sweep(); got != nil {
		t.Errorf("at first: %q", got)
	}
	w.peer.Advance(time.Minute)
	w.pull("svc/b", map[string]string{"b": "b\n"})
	w.pull("svc/c", map[string]string{"c": "c\n"})
	if got := sweep(); !slices.Equal(got[max(0, len(got)-2):], []string{"#2", "#3"}) {
		t.Errorf("changed: %q", got)
	}
	if issues, next, err := w.host.IssuesSince(ctx, w.shop, time.Time{}, false, ""); err != nil || len(issues) != 0 || next != "" {
		t.Errorf("issues: %+v, %v", issues, err)
	}
}
