package app

import (
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

// TestReviewHeldForMoney: the review of a pull request that a limit stops is said to be held, at
// the pull request too, and goes on by itself when the limit is raised.
func TestReviewHeldForMoney(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e, "--scenario", file(t, "s.yml", spending), "--prices", file(t, "p.yml", twoDollarsAToken))
			y.push("acme/web", map[string]string{"README": "hello\n", ".svc/policy.yml": "version: 1\nreview: {mode: auto}\n"})
			y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
			// The work costs 0.151, and each call needs room for 0.1024.
			y.send("PUT", "/v1/billing/spend-cap/members/"+y.user, y.owner, `{"usd": 0.2525}`).want(200)
			var enrolled struct{ Token string }
			decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, "{}").want(201), &enrolled)
			y.box(enrolled.Token)
			var work struct {
				ID string `json:"task_id"`
			}
			decode(t, y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/web", "title": "Make a file", "problem": "Make a file."}`).want(202), &work)
			state := func() string {
				pr := y.task(work.ID).PRID
				if pr == nil {
					return ""
				}
				var seen struct{ Review struct{ State string } }
				decode(t, y.send("GET", "/v1/prs/"+*pr, y.owner, "").want(200), &seen)
				return seen.Review.State
			}
			patience.Until(t, "the review is held", func() bool { return state() == "held" })
			y.send("PUT", "/v1/billing/spend-cap/members/"+y.user, y.owner, `{"usd": null}`).want(200)
			patience.Until(t, "the review goes on", func() bool { return state() != "held" })
		})
	}
}
