package service

import (
	"context"
	"fmt"
	"html"
	"sync"

	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Service and discovery"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "service.info", Method: "GET", Path: "/", Group: group, Rule: policy.Public(),
			Summary: "What this service is"}, s.info),
		op.New(op.Row{ID: "service.health", Method: "GET", Path: "/healthz", Group: group, Rule: policy.Public(), Also: []int{503},
			Summary: "Is it alive and are its dependencies"}, s.health),
		op.New(op.Row{ID: "service.openapi", AnyOrigin: true, Method: "GET", Path: "/v1/openapi.json", Group: group, Rule: policy.Public(), PerAddress: 30, Also: []int{304},
			Summary: "This description"}, s.openapi),
		op.New(op.Row{ID: "service.reference", Method: "GET", Path: "/docs", Group: group, Rule: policy.Public(), PerAddress: 60, Also: []int{304},
			Summary: "This description as a page for people"}, s.reference),
		op.New(op.Row{ID: "service.problem", Method: "GET", Path: "/problems/{slug}", Group: group, Rule: policy.Public(),
			Summary: "What a problem type means"}, s.problem),
	}
}

func (s *Service) info(ctx context.Context, _ op.None) (Card, error) {
	return Card{"Yardmaster", "ok", s.Version, op.RequestOf(ctx).BaseURL + "/docs"}, nil
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
			err := probe(ctx)
			mu.Lock()
			defer mu.Unlock()
			r := ProbeResult{"ok"}
			if err != nil {
				r.Status, out.Status = "failed", "degraded"
			}
			out.Checks[name] = r
		})
	}
	wg.Wait()
	return out, nil
}

type keptIn struct {
	Tag string `json:",omitempty" header:"If-None-Match" doc:"the ETag of what the caller has: 304 if that is still the answer"`
}

func (s *Service) openapi(context.Context, keptIn) (*op.Asset, error) { return s.Document() }

func (s *Service) reference(context.Context, keptIn) (*op.Asset, error) { return s.Reference() }

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
