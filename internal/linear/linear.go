// Package linear opens issues at Linear through its GraphQL API (Linear developers,
// "GraphQL API").
package linear

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Address is that of the API.
const Address = "https://api.linear.app/graphql"

// Limits of a call.
const (
	patience  = 20 * time.Second
	maxAnswer = 1 << 20
	maxWords  = 300 // bytes of what Linear says about a refusal
)

// ErrKey says that Linear does not take the API key, or does not let it do this.
var ErrKey = errors.New("linear refuses the API key")

// BusyError says that Linear did not answer, or limits the calls of the key. The call can
// be made again after After.
type BusyError struct {
	After time.Duration // 0: Linear does not say
	Cause error
}

// Error implements error.
func (e *BusyError) Error() string { return "linear did not answer: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *BusyError) Unwrap() error { return e.Cause }

// RefusedError says that Linear refuses a call for good.
type RefusedError struct{ Why string }

// Error implements error.
func (e *RefusedError) Error() string { return "linear refuses the call: " + e.Why }

// Team is a team at Linear.
type Team struct {
	ID   string `json:"id"`
	Key  string `json:"key"` // such as ENG
	Name string `json:"name"`
}

// Viewer is whose API key a call has, and the teams that the key may see, 250 at most.
type Viewer struct {
	ID, Name string
	Teams    []Team
}

// Draft is an issue to be opened. ID is a UUIDv4 that the issue will have.
type Draft struct{ ID, TeamID, Title, Description string }

// Issue is an issue at Linear.
type Issue struct {
	ID         string `json:"id"`
	Identifier string `json:"identifier"` // such as ENG-7
	URL        string `json:"url"`
}

// Client calls the API. Safe for concurrent use.
type Client struct {
	address string
	http    *http.Client
}

// New makes a Client of the API at an address; a nil road is http.DefaultTransport. It follows
// no redirect, which would take the key elsewhere.
func New(address string, road http.RoundTripper) *Client {
	return &Client{address: address, http: &http.Client{
		Transport:     road,
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Viewer answers whose key it is. It fails with ErrKey, *BusyError and *RefusedError, as
// the other methods do.
func (c *Client) Viewer(ctx context.Context, key string) (Viewer, error) {
	var out struct {
		Viewer struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"viewer"`
		Teams struct {
			Nodes []Team `json:"nodes"`
		} `json:"teams"`
	}
	err := c.call(ctx, key, `query Viewer { viewer { id name } teams(first: 250) { nodes { id key name } } }`, nil, &out)
	for i, t := range out.Teams.Nodes {
		out.Teams.Nodes[i] = Team{ID: clean(t.ID), Key: clean(t.Key), Name: clean(t.Name)}
	}
	return Viewer{ID: clean(out.Viewer.ID), Name: clean(out.Viewer.Name), Teams: out.Teams.Nodes}, err
}

// Find finds an issue by its id; false if there is none that the key may see.
func (c *Client) Find(ctx context.Context, key, issueID string) (Issue, bool, error) {
	var out struct {
		Issues struct {
			Nodes []Issue `json:"nodes"`
		} `json:"issues"`
	}
	err := c.call(ctx, key, `query Find($id: ID!) { issues(filter: { id: { eq: $id } }, first: 1, includeArchived: true) {
		nodes { id identifier url } } }`, map[string]any{"id": issueID}, &out)
	if err != nil || len(out.Issues.Nodes) == 0 {
		return Issue{}, false, err
	}
	return out.Issues.Nodes[0].clean(), true, nil
}

// Create opens an issue. Linear refuses a second issue with the same id, so a call whose
// answer was lost can be made again after Find.
func (c *Client) Create(ctx context.Context, key string, d Draft) (Issue, error) {
	var out struct {
		Made struct {
			Success bool   `json:"success"`
			Issue   *Issue `json:"issue"`
		} `json:"issueCreate"`
	}
	err := c.call(ctx, key, `mutation Create($input: IssueCreateInput!) { issueCreate(input: $input) {
		success issue { id identifier url } } }`, map[string]any{"input": map[string]any{
		"id": d.ID, "teamId": d.TeamID, "title": d.Title, "description": d.Description,
	}}, &out)
	switch {
	case err != nil:
		return Issue{}, err
	case !out.Made.Success || out.Made.Issue == nil:
		return Issue{}, &RefusedError{Why: "no issue was made"}
	}
	return out.Made.Issue.clean(), nil
}

// clean is a text of Linear as a database stores it, cut.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), maxWords)], ""), "\x00", "")
}

func (i Issue) clean() Issue {
	i.Identifier, i.URL = clean(i.Identifier), clean(i.URL)
	if !strings.HasPrefix(i.URL, "https://") {
		i.URL = "" // it is shown as a link
	}
	return i
}

// answer is the answer to a call of GraphQL.
type answer struct {
	Data   json.RawMessage `json:"data"`
	Errors []struct {
		Message    string `json:"message"`
		Extensions struct {
			Code string `json:"code"`
			Says string `json:"userPresentableMessage"`
		} `json:"extensions"`
	} `json:"errors"`
}

func (c *Client) call(ctx context.Context, key, query string, variables map[string]any, out any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make a call to Linear: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", authorization(key))
	resp, err := c.http.Do(req)
	if err != nil {
		return &BusyError{Cause: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &BusyError{Cause: err}
	}
	var a answer
	malformed := json.Unmarshal(text, &a)
	if err := failure(resp, a, malformed); err != nil {
		return err
	}
	if err := json.Unmarshal(a.Data, out); err != nil {
		return &BusyError{Cause: fmt.Errorf("read the answer: %w", err)}
	}
	return nil
}

// authorization is the header of a key: that of a person as it is, one of OAuth as a
// bearer (Linear developers, "Authentication").
func authorization(key string) string {
	if strings.HasPrefix(key, "lin_api_") {
		return key
	}
	return "Bearer " + key
}

// failure is the error that an answer tells; nil if it tells none. Linear answers a limit
// with the status 400 and the code RATELIMITED (Linear developers, "Rate limiting").
func failure(resp *http.Response, a answer, malformed error) error {
	var code, why string
	if len(a.Errors) > 0 {
		code, why = a.Errors[0].Extensions.Code, a.Errors[0].Message
		if says := a.Errors[0].Extensions.Says; says != "" {
			why = says
		}
	}
	why = clean(why)
	switch {
	case code == "RATELIMITED", resp.StatusCode == http.StatusTooManyRequests:
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &BusyError{After: max(time.Minute, time.Duration(min(after, 3600))*time.Second),
			Cause: errors.New("a limit of the key is reached")}
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden, code == "AUTHENTICATION_ERROR",
		code == "FORBIDDEN":
		return fmt.Errorf("%w: %s", ErrKey, why)
	case resp.StatusCode >= 500, malformed != nil, resp.StatusCode >= 300 && resp.StatusCode < 400:
		return &BusyError{Cause: fmt.Errorf("the status is %d", resp.StatusCode)}
	case len(a.Errors) > 0, resp.StatusCode != http.StatusOK:
		return &RefusedError{Why: why}
	}
	return nil
}
