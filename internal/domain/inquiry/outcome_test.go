package inquiry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
)

// Each way in which a question has no answer says what it is, and costs nothing it need not.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		y := newYard(t, d, sample, nil)
		long := strings.Repeat("é", mostQuestion)
		for _, c := range []struct {
			caller, path, body string
			status             int
			has                string
		}{
			{"acme ada", "acme/nothing", `{"question":"What port?"}`, 404, "There is no such repository."},
			{"acme ada", "rival/shop", `{"question":"What port?"}`, 404, "There is no such repository."},
			{"rival eve", "acme/web", `{"question":"What port?"}`, 404, "There is no such repository."},
			{"acme ada", "acme/off", `{"question":"What port?"}`, 409, "repo_not_enabled"},
			{"acme ada", "acme/web", `{}`, 400, `"question"`},
			{"acme ada", "acme/web", `{"question":" \n "}`, 400, "must not be empty"},
			{"acme ada", "acme/web", `{"question":"a\u0000b"}`, 400, "without NUL"},
			{"acme ada", "acme/web", `{"question":"` + long + `x"}`, 400, "1000"},
			{"acme ada", "acme/web", `{"question":"What port?","model":"best"}`, 400, "model"},
			{"acme ada", "acme/bare", `{"question":"What port?"}`, 200, emptyRepository},
			{"acme ada", "acme/web", `{"question":"Zyzzyva quixotry?"}`, 200, nothingFound},
			{"acme ada", "acme/web", `{"question":"` + long + `"}`, 200, nothingFound},
		} {
			rec := y.send(c.caller, "/v1/repos/"+c.path+"/ask", c.body)
			if rec.Code != c.status || !strings.Contains(rec.Body.String(), c.has) {
				t.Errorf("%s %.60s: %d %s", c.path, c.body, rec.Code, rec.Body)
			}
		}
		if len(y.model.matter) > 0 {
			t.Errorf("a model was asked: %+v", y.model.matter)
		}
	})
}

// What keeps the model from an answer is the caller's to know, and ends the session.
func TestModelFails(t *testing.T) {
	t.Parallel()
	y := newYard(t, dbtest.SQLite(t), sample, nil)
	y.model.refuse = fault.New(fault.Forbidden, "no_credential", "The account has no key.")
	fails := func(status int, slug string) {
		t.Helper()
		rec := y.send("acme ada", "/v1/repos/acme/web/ask", `{"question":"What is the default port?"}`)
		if rec.Code != status || !strings.Contains(rec.Body.String(), slug) {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	}
	fails(403, "no_credential")
	y.model.refuse = nil
	for _, f := range []struct {
		err    error
		status int
		slug   string
	}{
		{fault.New(fault.PaymentRequired, "budget_exhausted", "The budget is spent."), 402, "budget_exhausted"},
		{fault.New(fault.Unavailable, "provider_unavailable", "It is down."), 503, "provider_unavailable"},
		{fault.New(fault.RateLimited, "provider_rate_limit", "Slowly."), 429, "provider_rate_limit"},
		{errors.New("torn"), 500, "internal"},
	} {
		y.model.say = func(string, []string) (string, error) { return "", f.err }
		fails(f.status, f.slug)
	}
	if fmt.Sprint(y.model.ends) != "[failed failed failed failed]" {
		t.Errorf("%v", y.model.ends)
	}
	y.svc.Rate = &rate{}
	fails(429, "20 questions a minute")
}

// A person has one question answered at a time, an account four.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	y := newYard(t, dbtest.SQLite(t), sample, nil)
	begun, on := make(chan struct{}), make(chan struct{})
	y.model.say = func(string, []string) (string, error) {
		begun <- struct{}{}
		<-on
		return `{"claims":[]}`, nil
	}
	ended := make(chan int, ofAccount)
	ask := func(person string) int {
		return y.send("acme "+person, "/v1/repos/acme/web/ask", `{"question":"What is the default port?"}`).Code
	}
	for i := range ofAccount {
		go func() { ended <- ask(fmt.Sprint("p", i)) }()
		<-begun
		if got := ask(fmt.Sprint("p", i)); got != 429 {
			t.Errorf("the second question of one person: %d", got)
		}
	}
	if got := ask("another"); got != 429 {
		t.Errorf("the fifth question of the account: %d", got)
	}
	close(on)
	for range ofAccount {
		if got := <-ended; got != 200 {
			t.Errorf("%d", got)
		}
	}
	go func() { <-begun }()
	if got := ask("another"); got != 200 || len(y.svc.turns.open) != 0 {
		t.Errorf("afterwards: %d, %v", got, y.svc.turns.open)
	}
}
