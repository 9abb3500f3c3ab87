package github_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"yardmaster/internal/proof/github"
)

// TestConditionalRequests holds that a 304 is free, and that a tag changes when the
// answer does.
func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	token := w.inst.Token()
	const path = "/repos/acme/shop/issues?state=all&sort=updated&per_page=1"
	one := w.as(token, 200, "GET", path, nil)
	used := w.inst.Used()
	tag := one.header.Get("ETag")
	for range 3 {
		a := w.ask(token, "GET", path, nil, "If-None-Match", tag)
		if a.status != http.StatusNotModified || len(a.text) != 0 || a.header.Get("ETag") != tag {
			t.Errorf("asked again: %d %s", a.status, a.text)
		}
	}
	if n := w.inst.Used(); n != used {
		t.Errorf("the answers without news cost %d", n-used)
	}
	w.repo.OpenIssue(w.ann, "News", "")
	a := w.ask(token, "GET", path, nil, "If-None-Match", tag)
	if a.status != 200 || a.header.Get("ETag") == tag || w.inst.Used() != used+1 {
		t.Errorf("after news: %d, %d used", a.status, w.inst.Used()-used)
	}
	if left := a.header.Get("x-ratelimit-remaining"); left != strconv.Itoa(5000-w.inst.Used()) {
		t.Errorf("%s are left", left)
	}
}

// TestPrimaryLimit holds the limit of an hour, which grows with repositories.
func TestPrimaryLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{Limits: github.Limits{Primary: 3}})
	token := w.inst.Token()
	for range 3 {
		w.as(token, 200, "GET", "/repos/acme/shop", nil)
	}
	a := w.as(token, 403, "GET", "/repos/acme/shop", nil)
	if a.header.Get("x-ratelimit-remaining") != "0" || a.header.Get("retry-after") != "" {
		t.Errorf("refused with %v", a.header)
	}
	reset, err := strconv.ParseInt(a.header.Get("x-ratelimit-reset"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	w.Advance(time.Unix(reset, 0).Sub(w.Now()))
	w.do(200, "GET", "/repos/acme/shop", nil)

	many := newWorld(t, github.Options{})
	for n := range 29 {
		many.Repo(fmt.Sprintf("acme/repo-%d", n), github.NewRepo{})
	}
	if limit := many.do(200, "GET", "/repos/acme/shop", nil).header.Get("x-ratelimit-limit"); limit != "5500" {
		t.Errorf("the limit with 30 repositories is %s", limit)
	}
}

// TestSecondaryLimits holds points, content and requests at once.
func TestSecondaryLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{Limits: github.Limits{Points: 30, ContentPerMinute: 4, ContentPerHour: 7, AtOnce: 2}})
	i := w.repo.OpenIssue(w.ann, "x", "")
	path := fmt.Sprintf("/repos/acme/shop/issues/%d", i.Number)
	for range 6 { // five points each
		w.do(200, "PATCH", path, object{"title": "y"})
	}
	a := w.do(403, "PATCH", path, object{"title": "z"})
	if a.header.Get("retry-after") == "" || i.State().Title != "y" {
		t.Errorf("refused with %v, the title is %s", a.header, i.State().Title)
	}
	w.do(200, "GET", path, nil) // another endpoint
	for range 4 {
		w.do(201, "POST", path+"/comments", object{"body": "x"})
	}
	w.do(403, "POST", path+"/comments", object{"body": "x"})
	w.Advance(time.Minute)
	for range 3 {
		w.do(201, "POST", path+"/comments", object{"body": "x"})
	}
	w.Advance(2 * time.Minute)
	a = w.do(403, "POST", path+"/comments", object{"body": "x"})
	if n, _ := strconv.Atoi(a.header.Get("retry-after")); n < 3000 {
		t.Errorf("retry after %d s", n)
	}
	w.Advance(time.Hour)
	w.do(201, "POST", path+"/comments", object{"body": "x"})

	until, reached := make(chan struct{}), make(chan struct{}, 2)
	w.Break(github.Fault{
		Operation: "GET /repos/{owner}/{repo}/labels", Effect: github.Hold, Until: until, Reached: func() { reached <- struct{}{} },
	})
	token := w.inst.Token()
	answers := make(chan int)
	for range 2 {
		go func() {
			a, _ := w.try(token, "GET", "/repos/acme/shop/labels", nil)
			answers <- a.status
		}()
	}
	<-reached
	<-reached
	w.as(token, 403, "GET", "/repos/acme/shop", nil)
	close(until)
	for range 2 {
		if status := <-answers; status != 200 {
			t.Errorf("a held request answered %d", status)
		}
	}
	w.as(token, 200, "GET", "/repos/acme/shop", nil)
}

// TestFaults holds what goes wrong on the way: lost answers whose work was done,
// failures, limits out of the blue.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	i := w.repo.OpenIssue(w.ann, "x", "")
	path := fmt.Sprintf("/repos/acme/shop/issues/%d/comments", i.Number)
	const comment = "POST /repos/{owner}/{repo}/issues/{issue_number}/comments"
	w.Break(github.Fault{Operation: comment, Effect: github.Lose, Times: 1})
	if a, err := w.try(w.inst.Token(), "POST", path, object{"body": "lost"}); err == nil || len(i.Comments()) != 1 {
		t.Errorf("answered %d, %d comments", a.status, len(i.Comments()))
	}
	w.do(201, "POST", path, object{"body": "second"})
	w.Break(github.Fault{Operation: comment, Effect: github.FailLate, Times: 1})
	w.do(502, "POST", path, object{"body": "third"})
	w.Break(github.Fault{Effect: github.Fail, Status: 503, Times: 1})
	w.do(503, "POST", path, object{"body": "never"})
	w.Break(github.Fault{Effect: github.Throttle, Delay: 90 * time.Second, Times: 1})
	if a := w.do(403, "POST", path, object{"body": "never"}); a.header.Get("retry-after") != "90" {
		t.Errorf("retry after %s", a.header.Get("retry-after"))
	}
	w.Break(github.Fault{Effect: github.Exhaust, Delay: time.Hour})
	if a := w.do(403, "GET", path, nil); a.header.Get("x-ratelimit-remaining") != "0" {
		t.Errorf("refused with %v", a.header)
	}
	w.Mend()
	if n := len(w.do(200, "GET", path, nil).list()); n != 3 {
		t.Errorf("there are %d comments", n)
	}
	if n := w.Called(comment); n != 5 {
		t.Errorf("%d calls were counted", n)
	}
}

// TestPages holds that lists are paged by links that lead through all of it.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	for n := range 5 {
		w.repo.OpenIssue(w.ann, fmt.Sprint(n), "")
	}
	seen := ""
	for next := "/repos/acme/shop/issues?per_page=2&direction=asc&sort=created"; next != ""; {
		a := w.do(200, "GET", next, nil)
		for _, i := range a.list() {
			seen += fmt.Sprint(i["title"])
		}
		next = follow(a.header.Get("Link"))
	}
	if seen != "01234" {
		t.Errorf("the pages hold %s", seen)
	}
}
