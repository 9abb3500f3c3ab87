package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
)

// queryError is what GraphQL answers, with status 200, to a query that failed.
type queryError struct {
	messages []string
}

// Error implements error.
func (e *queryError) Error() string { return fmt.Sprintf("GitHub's GraphQL: %.500q", e.messages) }

// says tells whether one of the messages has a text in it, in any case.
func (e *queryError) says(text string) bool {
	for _, m := range e.messages {
		if strings.Contains(strings.ToLower(m), text) {
			return true
		}
	}
	return false
}

// graphQL carries out a query about a repository with a token for it, and reads its
// data into out, unless out is nil. It fails with *queryError where no fault of package
// codehost fits.
func (h *Host) graphQL(ctx context.Context, r codehost.Repo, need permissions, query string, variables map[string]any, out any) error {
	if err := h.ours(r); err != nil {
		return err
	}
	type problem struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	for renewed := false; ; renewed = true {
		auth, err := h.tokenFor(ctx, r, need)
		if err != nil {
			return err
		}
		var got struct {
			Data   jsontext.Value `json:"data"`
			Errors []problem      `json:"errors"`
		}
		re, err := h.send(ctx, request{
			method: http.MethodPost, path: h.cfg.Addresses.GraphQL, auth: auth, need: need, reads: strings.HasPrefix(query, "query"),
			body: map[string]any{"query": query, "variables": variables},
		}, &got)
		if errors.Is(err, errUnauthorized) {
			if renewed {
				return &codehost.BusyError{Cause: err}
			}
			h.tokens.forget(r)
			continue
		}
		if err != nil {
			return fmt.Errorf("query %s: %w", r, err)
		}
		if len(got.Errors) == 0 {
			if out == nil {
				return nil
			}
			return json.Unmarshal(got.Data, out, lenient)
		}
		e := &queryError{}
		kinds := map[string]bool{}
		for _, p := range got.Errors {
			e.messages = append(e.messages, p.Message)
			kinds[p.Type] = true
		}
		switch {
		case kinds["RATE_LIMITED"] && !hidden(re.header): // the hour of GraphQL is used up; send has noted that
			return &codehost.BusyError{After: max(time.Second, until(re.header).Sub(h.cfg.Now())), Limit: true, Cause: e}
		case kinds["RATE_LIMITED"] || e.says("rate limit"):
			h.limits.Note(auth.payer, pace.Note{Refused: true})
			return &codehost.BusyError{After: time.Minute, Limit: true, Cause: e}
		case e.says("archived"):
			return codehost.ErrGone.Because(e)
		case kinds["FORBIDDEN"] || e.says("not accessible by"):
			return errors.Join(&codehost.ForbiddenError{Permission: accepted(need.String())}, e)
		case kinds["NOT_FOUND"]:
			return codehost.ErrNotFound.Because(e)
		case e.says("something went wrong"), e.says("timeout"):
			return &codehost.BusyError{Cause: e}
		}
		return e
	}
}
