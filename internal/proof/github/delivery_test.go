package github_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/proof/github"
)

// TestRedelivery holds that a failed delivery is not repeated by itself, is listed as
// failed, and is redelivered with the same GUID.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	w.take()
	w.answerHooks(http.StatusServiceUnavailable)
	i := w.repo.OpenIssue(w.ann, "One", "")
	got := w.take()
	if len(got) != 1 || !got[0].good || got[0].target != fmt.Sprint(w.app.ID) {
		t.Fatalf("got %v", got)
	}
	w.answerHooks(http.StatusOK)
	i.Close(w.ann, "completed")
	if got := w.told(); got != "issues closed" {
		t.Errorf("told of %s", got)
	}
	failed := w.byApp(200, "GET", "/app/hook/deliveries?status=failure", nil).list()
	if len(failed) != 1 || failed[0]["guid"] != got[0].guid || failed[0]["status_code"] != 503.0 || failed[0]["redelivery"] != false {
		t.Fatalf("failed are %v", failed)
	}
	at := fmt.Sprintf("/app/hook/deliveries/%.0f/attempts", failed[0]["id"])
	w.app.Rotate("another")
	w.byApp(202, "POST", at, nil)
	again := w.take()
	if len(again) != 1 || again[0].guid != got[0].guid || again[0].action != "opened" || again[0].good {
		t.Errorf("redelivered %v", again) // it is signed with the secret of now
	}
	all := w.byApp(200, "GET", "/app/hook/deliveries", nil).list()
	if all[0]["guid"] != got[0].guid || all[0]["redelivery"] != true || all[0]["id"] == failed[0]["id"] {
		t.Errorf("the newest is %v", all[0])
	}
	w.Advance(73 * time.Hour)
	w.byApp(404, "POST", at, nil)
}

// TestSlowReceivers holds that an answer after the time limit is a failure.
func TestSlowReceivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{HookTimeout: 50 * time.Millisecond})
	w.take()
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(release)
	w.byApp(200, "PATCH", "/app/hook/config", object{"url": slow.URL})
	w.repo.OpenIssue(w.ann, "One", "")
	w.take()
	if d := w.app.Deliveries(); d[len(d)-1].Status != "timed out" {
		t.Errorf("the delivery is %v", d[len(d)-1])
	}
}

// TestSpoiledDeliveries holds each fault of deliveries, and that a seed repeats them.
func TestSpoiledDeliveries(t *testing.T) {
	t.Parallel()
	const many = 30
	play := func(f github.HookFaults) (*world, []letter) {
		w := newWorld(t, github.Options{})
		w.take()
		w.Spoil(f)
		for n := range many {
			w.repo.OpenIssue(w.ann, fmt.Sprint(n), "")
		}
		return w, w.take()
	}
	order := func(all []letter) (out string) {
		for _, l := range all {
			out += fmt.Sprint(at(l.body, "issue.number"), " ")
		}
		return out
	}
	w, got := play(github.HookFaults{Seed: 7, Lost: 0.3})
	if failed := w.byApp(200, "GET", "/app/hook/deliveries?status=failure&per_page=100", nil).list(); len(failed) == 0 || len(failed)+len(got) != many {
		t.Errorf("%d were lost, %d came", len(failed), len(got))
	}
	w, got = play(github.HookFaults{Seed: 7, Vanished: 0.3})
	if len(got) == many || len(w.app.Deliveries()) != len(got)+1 {
		t.Errorf("%d came, %d are listed", len(got), len(w.app.Deliveries()))
	}
	_, got = play(github.HookFaults{Seed: 7, Doubled: 0.3})
	guids := map[string]int{}
	for _, l := range got {
		guids[l.guid]++
	}
	if len(guids) != many || len(got) <= many {
		t.Errorf("%d came of %d", len(got), len(guids))
	}
	_, got = play(github.HookFaults{Seed: 7, Shuffled: 0.5})
	_, again := play(github.HookFaults{Seed: 7, Shuffled: 0.5})
	_, otherwise := play(github.HookFaults{Seed: 8, Shuffled: 0.5})
	if len(got) != many || order(got) != order(again) || order(got) == order(otherwise) {
		t.Errorf("shuffled %s, then %s, then %s", order(got), order(again), order(otherwise))
	}
	w, got = play(github.HookFaults{Seed: 7, Forged: 0.3, Foreign: 0.3})
	bad, foreign := 0, 0
	for _, l := range got {
		switch {
		case l.target != fmt.Sprint(w.app.ID):
			foreign++
		case !l.good:
			bad++
		}
	}
	if bad == 0 || foreign == 0 || bad+foreign+many != len(got) || len(w.app.Deliveries()) != many+1 {
		t.Errorf("%d forged, %d foreign, %d in all", bad, foreign, len(got))
	}
}

// TestSendersAtOnce holds that a slow receiver does not hold back other deliveries if a
// test wants many at once.
func TestSendersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{Senders: 3})
	w.take()
	both := make(chan struct{}, 3)
	all := make(chan struct{})
	meet := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		both <- struct{}{}
		<-all
	}))
	defer meet.Close()
	w.byApp(200, "PATCH", "/app/hook/config", object{"url": meet.URL})
	for range 3 {
		w.repo.OpenIssue(w.ann, "x", "")
	}
	for range 3 {
		<-both
	}
	close(all)
	w.take()
}

// TestLargeEvents holds that an event above the limit is never sent.
func TestLargeEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{MaxPayload: 60_000})
	w.take()
	w.repo.OpenIssue(w.ann, "Large", strings.Repeat("x", 60_000))
	w.repo.OpenIssue(w.ann, "Small", "x")
	if got := w.told(); got != "issues opened" {
		t.Errorf("told of %s", got)
	}
}

// TestSubscriptions holds that an installation is told of what it subscribes to and
// has the permission for.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	w.take()
	w.app.Ask(map[string]string{"issues": "read", "checks": "read"}, []string{"issues", "check_run", "check_suite", "pull_request"})
	w.inst.Accept(w.ann)
	head := w.repo.Commit(w.ann, "feature", "x", map[string]string{"a": "b\n"})
	w.repo.OpenPull(w.ann, github.NewPull{Head: "feature"})
	w.repo.OpenIssue(w.ann, "x", "").Comment(w.ann, "of which it did not want to hear")
	k := w.repo.Check(w.app, head, "x", "success")
	w.repo.Rerequest(w.ann, k.ID)
	want := "installation new_permissions_accepted, issues opened, check_run created, check_run completed, check_suite completed"
	if got := w.told(); got != want {
		t.Errorf("told of %s", got)
	}
	w.inst.Drop(w.ann, w.repo)
	w.inst.Suspend(w.ann, true)
	w.repo.OpenIssue(w.ann, "x", "")
	if got := w.told(); got != "installation_repositories removed, installation suspend" {
		t.Errorf("told of %s", got)
	}
}
