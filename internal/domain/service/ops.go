package service

import (
	"context"
	"errors"
	"sync"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

const group = "Service and discovery"

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      "service.info",
			Method:  "GET",
			Path:    "/",
			Group:   group,
			Rule:    policy.Public(),
			Also:    []int{303},
			Summary: "What this service is",
			Doc:     "Name, version, and where the documentation is. A browser is sent to the dashboard.",
		}, s.info),
		op.New(op.Row{
			ID:      "service.health",
			Method:  "GET",
			Path:    "/healthz",
			Group:   group,
			Rule:    policy.Public(),
			Also:    []int{503},
			Summary: "Is it alive and are its dependencies",
			Doc:     "503 with status degraded while one of the checks fails.",
		}, s.healthz),
		op.New(op.Row{
			ID:      "service.ready",
			Method:  "GET",
			Path:    "/readyz",
			Group:   group,
			Rule:    policy.Public(),
			Also:    []int{503},
			Summary: "Should requests be sent here now",
			Doc: "503 while something fails that every request needs, and from the moment the server was told to stop: a " +
				"load balancer sends requests elsewhere then.",
		}, s.ready),
		op.New(op.Row{
			ID:         "service.openapi",
			AnyOrigin:  true,
			Method:     "GET",
			Path:       "/v1/openapi.json",
			Group:      group,
			Rule:       policy.Public(),
			PerAddress: 30,
			Also:       []int{304},
			Summary:    "This description",
			Doc: "The OpenAPI 3.1 document of everything under /v1, the same for everybody. Send its ETag as " +
				"If-None-Match to be told 304 while it has not changed.",
		}, s.openapi),
		op.New(op.Row{
			ID:         "service.reference",
			Method:     "GET",
			Path:       "/docs",
			Group:      group,
			Rule:       policy.Public(),
			PerAddress: 60,
			Also:       []int{304},
			Summary:    "This description as a page for people",
			Doc:        "Generated from the same rows as the document.",
		}, s.reference),
		op.New(op.Row{
			ID:      "service.problem",
			Method:  "GET",
			Path:    "/problems/{slug}",
			Group:   group,
			Rule:    policy.Public(),
			Summary: "What a problem type means",
			Doc:     "The page that the type of a problem document points to.",
		}, s.problem),
		op.New(op.Row{
			ID: "service.dashboard", Method: "GET", Path: "/ui/{path...}", Group: group, Rule: policy.Public(),
			Lenient: true, // views and filters of pages are in the query, for the page to read
			Also:    []int{303, 304},
			Summary: "The dashboard",
			Doc: "One page for every address below /ui/. What it shows and does, it asks of this API with the session's cookie. " +
				"A browser without one is sent to the sign-in page, which leads back.",
		}, s.dashboard),
		op.New(op.Row{
			ID: "service.dashboard_file", Method: "GET", Path: "/ui/a/{name}", Group: group, Rule: policy.Public(),
			Also:    []int{304},
			Summary: "A file of the dashboard",
			Doc: "Another text has another name, so that a browser keeps it for a year. What pages without script load is there also " +
				"without the dashboard.",
		}, s.dashboardFile),
	}
}

type infoIn struct {
	Accept string `header:"Accept"`
}

// info answers with the card of the service, or to a browser with the start page.
func (s *Service) info(ctx context.Context, in infoIn) (op.Reply, error) {
	base := op.RequestOf(ctx).BaseURL
	if !op.PrefersPage(in.Accept) {
		card := Card{"Yardmaster", s.health(ctx).Status, s.Version, base + "/docs"}
		return op.Reply{Header: map[string]string{"Vary": "Accept"}, Body: card}, nil
	}
	if s.Dashboard {
		to := web.GoTo("/ui/")
		to.Header["Vary"] = "Accept"
		return to, nil
	}
	v := home{Base: base, Version: s.Version}
	var err error
	if v.Login, v.Account, err = s.Sessions.Who(ctx); err != nil {
		return op.Reply{}, err
	}
	r, err := web.Render(ctx, pages, 200, "home", v, "")
	if err == nil {
		r.Header["Vary"] = "Accept"
	}
	return r, err
}

type home struct{ Login, Account, Base, Version string }

func (s *Service) healthz(ctx context.Context, _ op.None) (Health, error) { return s.health(ctx), nil }

func (s *Service) health(ctx context.Context) Health {
	out := Health{Status: healthy, Checks: s.probe(ctx, s.Probes)}
	if s.SHA != "" {
		out.SHA = &s.SHA
	}
	for _, c := range out.Checks {
		if c.Status != healthy {
			out.Status = degraded
		}
	}
	return out
}

func (s *Service) ready(ctx context.Context, _ op.None) (Readiness, error) {
	needed := map[string]func(context.Context) error{}
	for _, name := range s.Needed {
		needed[name] = s.Probes[name]
	}
	out := Readiness{Status: "ready", Checks: s.probe(ctx, needed)}
	for _, c := range out.Checks {
		if c.Status == failed {
			out.Status = "not-ready"
		}
	}
	if s.Stopping() {
		out.Status = "stopping"
	}
	return out, nil
}

// probe calls all probes at the same time.
func (s *Service) probe(ctx context.Context, probes map[string]func(context.Context) error) map[string]ProbeResult {
	out := map[string]ProbeResult{}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, probe := range probes {
		wg.Go(func() {
			err := probe(ctx)
			r := ProbeResult{Status: healthy}
			if err != nil {
				r.Status = failed
			}
			if t, ok := errors.AsType[*Trouble](err); ok {
				if r.Detail = &t.Detail; t.Degraded {
					r.Status = degraded
				}
			}
			if name == "storage" {
				if n, err := s.Free(); err == nil {
					r.FreeBytes = &n
				}
			}
			mu.Lock()
			defer mu.Unlock()
			out[name] = r
		})
	}
	wg.Wait()
	return out
}

type keptIn struct {
	Tag string `json:",omitempty" header:"If-None-Match" doc:"the ETag of what the caller has: 304 if that is still the answer"`
}

func (s *Service) openapi(context.Context, keptIn) (*op.Asset, error) { return s.Document() }

func (s *Service) reference(context.Context, keptIn) (*op.Asset, error) { return s.Reference() }

type problemIn struct {
	Slug string `json:"slug" maxLength:"64" example:"queue-full" doc:"last segment of the type of a problem"`
}

// problem always answers with a page, because the address is for people.
func (s *Service) problem(ctx context.Context, in problemIn) (op.Reply, error) {
	v := meaning{Slug: in.Slug, Text: meanings[in.Slug]}
	for _, k := range fault.Kinds() {
		if k.Slug() == in.Slug {
			v.Title, v.Status, v.Do = k.Title(), k.Status(), remedies[k]
		}
	}
	if v.Text == "" && v.Title == "" {
		return op.Reply{}, fault.Missing("problem type")
	}
	return web.Render(ctx, pages, 200, "problem", v, "")
}

type meaning struct {
	Slug, Title, Text, Do string
	Status                int
}

// remedies tell what to do about a failure whose slug is that of its kind.
var remedies = map[fault.Kind]string{
	fault.Invalid:         "The member errors names each field and what is wrong with it. Change these and send the request again.",
	fault.Unauthenticated: "Send Authorization: Bearer with a token that has neither expired nor been revoked, or sign in.",
	fault.PaymentRequired: "The member detail names the way out.",
	fault.Forbidden:       "Another credential, or another person, may do it; the same request does not succeed by sending it again.",
	fault.NotFound: "Look at the id, and at the account that the credential is of: what belongs to another account is " +
		"not found either.",
	fault.MethodNotAllowed: "The header Allow names the methods that the path takes.",
	fault.Conflict:         "The member reason says what stands against it. Read the row again and decide anew.",
	fault.Gone:             "Ask for a new link.",
	fault.TooLarge:         "Send less. A body may have 1 MiB where nothing else is said.",
	fault.UnsupportedMedia: "Send the body as application/json.",
	fault.Unprocessable:    "The member detail says what cannot be done. Another request is needed, not another try.",
	fault.RateLimited:      "Wait as many seconds as Retry-After says.",
	fault.Unavailable:      "Try again in a while; what is not there now is named in detail.",
	fault.Internal:         "It is a mistake of ours. Tell whoever runs the server the request_id.",
}

var pages = web.Templates(`
{{define "home"}}{{if .Login}}{{template "top" (print "Welcome, " .Login)}}<p>You are signed in as <strong>{{.Login}}</strong>{{with .Account}}, in the account <strong>{{.}}</strong>{{end}}.</p>
<p>Work is done with the command line or the API. On your machine:</p>
<pre>yardmaster login --url {{.Base}}
yardmaster status
yardmaster task create --repo OWNER/NAME "What is to be done"</pre>
<p><a href="/docs">What the API offers</a></p>
{{template "signout" "/login"}}{{else}}{{template "top" "Yardmaster"}}<p>A control plane for AI developer agents.</p>
<a class="button" href="/login">Sign in</a>
<p><a href="/docs">What the API offers</a></p>
{{end}}<p><small>Version {{.Version}}</small></p>
{{template "end"}}{{end}}
{{define "problem"}}{{template "top" .Slug}}{{with .Title}}<p><strong>{{.}}</strong>, HTTP status {{$.Status}}.</p>
{{end}}{{with .Text}}<p>{{.}}</p>
{{end}}{{with .Do}}<p>{{.}}</p>
{{end}}<p>In a problem document the member <code>detail</code> says what happened this time, and <code>request_id</code> names the request for whoever runs the server.</p>
<p><a href="/docs">The API</a>, or <a href="/">the start</a></p>
{{template "end"}}{{end}}`)
