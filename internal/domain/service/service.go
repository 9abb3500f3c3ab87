// Package service is how the control plane describes itself: its card, its
// health, its OpenAPI document, and the page behind every problem type.
package service

import (
	"context"
	"fmt"
	"html"
	"sync"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Service and discovery"

// probeTime bounds each probe of a dependency.
const probeTime = 2 * time.Second

// Service answers for the process as a whole.
type Service struct {
	Version string
	SHA     string // git commit of a released build, else empty
	// Probes are the dependencies by name: database, bus, cache.
	Probes map[string]func(context.Context) error
	// Document is the OpenAPI document, made once.
	Document func() ([]byte, error)
}

// Card is the answer of the root path. It holds no account state.
type Card struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Version string `json:"version"`
	Docs    string `json:"docs"`
}

// Health is the answer of /healthz.
type Health struct {
	Status string                 `json:"status" enum:"ok,degraded"`
	SHA    *string                `json:"sha" doc:"commit of the running build; null on an unreleased one"`
	Checks map[string]ProbeResult `json:"checks"`
}

// ProbeResult is how one dependency answered.
type ProbeResult struct {
	Status string `json:"status" enum:"ok,failed"`
	TookMS int64  `json:"took_ms"`
}

// StatusCode is 503 when a dependency failed.
func (h Health) StatusCode() int {
	if h.Status != "ok" {
		return 503
	}
	return 200
}

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "service.info", Method: "GET", Path: "/", Group: group, Rule: policy.Public(),
			Summary: "What this service is"}, s.info),
		op.New(op.Row{ID: "service.health", Method: "GET", Path: "/healthz", Group: group, Rule: policy.Public(), Also: []int{503},
			Summary: "Is it alive and are its dependencies"}, s.health),
		op.New(op.Row{ID: "service.openapi", Method: "GET", Path: "/v1/openapi.json", Group: group, Rule: policy.Public(),
			Summary: "This description"}, s.openapi),
		op.New(op.Row{ID: "service.problem", Method: "GET", Path: "/problems/{slug}", Group: group, Rule: policy.Public(),
			Summary: "What a problem type means"}, s.problem),
	}
}

func (s *Service) info(context.Context, op.None) (Card, error) {
	return Card{"Yardmaster", "ok", s.Version, "/v1/openapi.json"}, nil
}

func (s *Service) health(ctx context.Context, _ op.None) (Health, error) {
	out := Health{Status: "ok", Checks: map[string]ProbeResult{}}
	if s.SHA != "" {
		out.SHA = &s.SHA
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, probe := range s.Probes {
		wg.Go(func() {
			start := time.Now()
			err := probe(ctx)
			mu.Lock()
			defer mu.Unlock()
			r := ProbeResult{"ok", time.Since(start).Milliseconds()}
			if err != nil {
				r.Status, out.Status = "failed", "degraded"
			}
			out.Checks[name] = r
		})
	}
	wg.Wait()
	return out, nil
}

func (s *Service) openapi(context.Context, op.None) (op.Reply, error) {
	b, err := s.Document()
	if err != nil {
		return op.Reply{}, err
	}
	return op.Reply{ContentType: "application/json", Header: map[string]string{"Cache-Control": "public, max-age=300"}, Body: b}, nil
}

type problemIn struct {
	Slug string `json:"slug" maxLength:"64"`
}

func (s *Service) problem(_ context.Context, in problemIn) (op.Reply, error) {
	text, ok := meanings[in.Slug]
	if !ok {
		for _, k := range fault.Kinds() {
			if k.Slug() == in.Slug {
				text, ok = fmt.Sprintf("%s. HTTP status %d. The detail of the problem document says what happened this time.", k.Title(), k.Status()), true
			}
		}
	}
	if !ok {
		return op.Reply{}, fault.Missing("problem type")
	}
	page := fmt.Sprintf("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%[1]s</title><h1>%[1]s</h1><p>%[2]s</p></html>\n",
		html.EscapeString(in.Slug), html.EscapeString(text))
	return op.Reply{ContentType: "text/html; charset=utf-8", Body: page}, nil
}

// meanings explains the slugs that say more than their status.
var meanings = map[string]string{
	"missing-scope":          "The credential is valid but lacks scopes that the route asserts; missing_scopes names them.",
	"user-required":          "The route is personal: it needs a credential that names a user. Machine tokens do not.",
	"session-required":       "The route works for a signed-in browser session only, not for a token.",
	"not-a-member":           "X-Svc-Account names an account that does not exist or that the user does not belong to.",
	"cross-origin":           "A write with the session cookie must come from the service's own origin.",
	"wrong-password":         "There is no such login, or the password is wrong.",
	"queue-full":             "The account's queue has reached its cap. Wait as long as Retry-After says.",
	"no-capacity":            "The account has no seat for an AI developer.",
	"problem-is-only-link":   "The problem text is nothing but links to issues or pull requests. Say what is to be done.",
	"sink-not-configured":    "The sink needs a connector that this server does not have.",
	"task_terminal":          "The task has ended; only a redispatch can bring a failed one back.",
	"not_cancellable_review": "A review cannot be cancelled while its pull request is open.",
	"head_moved":             "The pull request has a newer head than the one that was decided on; current_head_sha names it.",
	"repo_disabled":          "The repository is disabled for Yardmaster.",
	"repo_not_enabled":       "The repository is not enabled for Yardmaster.",
	"pr_not_open":            "The pull request has been merged or closed.",
	"box-revoked":            "The box was revoked. It has to be enrolled anew.",
}
