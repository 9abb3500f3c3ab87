package app

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"yardmaster/internal/api/idempotency"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

// programs are the paths that only programs call, whatever they say they like
// to read.
var programs = []string{"/v1/", "/.well-known/", "/oauth/token", "/oauth/register", "/auth/device", "/auth/methods", "/healthz",
	blob.Path}

// secrets are the members of answers that are credentials.
var secrets = []string{"fix_url", "token", "secret", "client_secret", "password", "credentials", "setup_url", "access_token", "key"}

// accountHeader names the account that a call with a cookie is about.
const accountHeader = "X-Svc-Account"

// pipeline carries out the calls of every surface.
func (a *App) pipeline() *op.Pipeline {
	return &op.Pipeline{
		BaseURL: a.base, Home: a.home(), Ledger: a.ledger(), Limits: a.limits(), Quota: a.parts.quota, Secrets: secrets,
		Open: a.mostOpen(), Settle: settle, Stopping: a.lasting,
		Authenticate: func(ctx context.Context, p op.Presented) (policy.Actor, error) {
			if actor, ok, err := a.parts.blocker.FixLink(ctx, p.Bearer); ok || err != nil {
				return actor, err
			}
			if actor, ok, err := a.parts.box.Actor(ctx, p.Bearer); ok || err != nil {
				return actor, err
			}
			return a.parts.signin.Authenticate(ctx, p)
		},
		Enter: func(ctx context.Context, actor policy.Actor) context.Context {
			return db.WithAccount(ctx, actor.AccountID)
		},
	}
}

// databaseTime is how long a transaction of a request may take. A node that was frozen holds what it has
// locked for 10 s at most, see package db.
const databaseTime = 15 * time.Second

// handler is everything that is served, and recorded.
func (a *App) handler() http.Handler {
	inner := a.observed(a.roomFor(a.served()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r.WithContext(db.WithPatience(r.Context(), databaseTime)))
	})
}

// whileServing ends the requests of a handler as soon as the process is about to end.
func (a *App) whileServing(h http.Handler) http.Handler {
	if a.lasting == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(a.lasting, cancel)()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// served is the capabilities, the git host, the model gateway for boxes, and the store
// of objects.
func (a *App) served() http.Handler {
	a.calls = a.pipeline()
	api := rest.Handler(rest.Config{
		Pipeline: a.calls, SecretParameters: secretParameters,
		Cookie: signin.Cookie(strings.HasPrefix(a.base, "https:")), AccountHeader: accountHeader,
		Own: a.cfg.OwnOrigins, Proxies: a.cfg.Proxies, Origins: a.cfg.MCPOrigins,
		Patience: a.cfg.BodyTime, Page: web.Failure, Programs: programs,
	}, a.parts.ops(a.opts.Version))
	git := a.whileServing(a.host.Handler(a.gitHooks(api)))
	elsewhere := a.whileServing(a.elsewhere())
	gateway := a.whileServing(http.StripPrefix("/gateway", a.parts.gateway.Caller().Gateway))
	objects := a.whileServing(a.serveObjects(api))
	requests, models := a.cfg.Does(config.RoleAPI), a.cfg.Does(config.RoleGateway)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls := strings.HasPrefix(r.URL.Path, "/gateway/")
		switch {
		case calls && !models, !calls && !requests && r.URL.Path != "/healthz" && r.URL.Path != "/readyz":
			http.Error(w, "This node has another role: the setting role of the server says which.", http.StatusNotFound)
		case strings.HasPrefix(r.URL.Path, "/git/-/"):
			w.Header().Set("Cache-Control", "no-store")
			rest.Name(w.Header(), r)
			note(r, "git")
			elsewhere.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/git/"):
			w.Header().Set("Cache-Control", "no-store")
			rest.Name(w.Header(), r)
			note(r, "git")
			git.ServeHTTP(w, r)
		case calls:
			w.Header().Set("Cache-Control", "no-store")
			rest.Name(w.Header(), r)
			note(r, "gateway")
			gateway.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, blob.Path):
			rest.Name(w.Header(), r)
			note(r, "blob")
			objects.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// gitHooks connect the built-in host to the domains.
func (a *App) gitHooks(otherwise http.Handler) builtin.Hooks {
	return builtin.Hooks{
		Authorize: a.gitAccess, Create: a.parts.repo.Create, Room: a.parts.quota.PushRoom, Pushed: a.pushed, Otherwise: otherwise,
		Writes: a.pushes, LFS: a.parts.lfs.Handler(objectDoor{a}),
	}
}

// pushes counts a push among the writes of its account. What runs that are under way push is
// not counted, as nothing is that they report.
func (a *App) pushes(ctx context.Context, access codehost.Access) error {
	if strings.HasPrefix(access.Who, "run:") || access.Account == "" {
		return nil
	}
	return a.calls.Wrote(ctx, access.Account)
}

// pushed is told of a push to the built-in host.
func (a *App) pushed(ctx context.Context, e codehost.PushEvent) {
	if err := a.parts.quota.Pushed(ctx, e.Repo); err != nil {
		a.log.ErrorContext(ctx, "a push was not measured; the next measure of its account will", slog.Any("error", err))
	}
	a.parts.repo.Pushed(ctx, e)
}

// note records the surface of a request that is not for a capability: the git host,
// the model gateway or the store of objects.
func note(req *http.Request, surface string) {
	r := observe.Of(req.Context())
	r.Surface, r.Pattern = surface, "/"+surface+"/"
}

// home is the path of the dashboard, empty if it is not served.
func (a *App) home() string {
	if a.cfg.UI != "on" {
		return ""
	}
	return "/ui/"
}

// ledger keeps the answers to writes with an Idempotency-Key.
func (a *App) ledger() *idempotency.Ledger {
	return &idempotency.Ledger{DB: a.db, Hub: a.hub, Logger: a.log, Process: a.boot}
}
