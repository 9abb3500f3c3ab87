package app

import (
	"context"
	"net/http"
	"strings"

	"yardmaster/internal/api/idempotency"
	"yardmaster/internal/api/op"
	"yardmaster/internal/clock"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

// handler is everything that is served: the capabilities, the git host, and
// the model gateway for boxes.
func (a *App) handler() http.Handler {
	guard := op.Guard{
		BaseURL: a.base, Own: a.cfg.OwnOrigins,
		Proxies: a.cfg.Proxies,
		Origins: a.cfg.MCPOrigins, Patience: a.cfg.BodyTime,
		Logger: a.log, Page: web.Failure,
	}
	guard.Authenticate = func(ctx context.Context, r *http.Request) (policy.Actor, error) {
		p := presented(r, guard)
		if actor, ok, err := a.parts.blocker.FixLink(ctx, p.Bearer); ok || err != nil {
			return actor, err
		}
		if actor, ok, err := a.parts.box.Actor(ctx, p.Bearer); ok || err != nil {
			return actor, err
		}
		return a.parts.signin.Authenticate(ctx, p)
	}
	guard.Enter = func(ctx context.Context, actor policy.Actor) context.Context {
		return db.WithAccount(ctx, actor.AccountID)
	}
	guard.Ledger = a.ledger()
	guard.Limits = a.limits()
	api := op.Handler(guard, a.parts.ops())
	hooks := a.gitHooks(a.parts.repo)
	hooks.Otherwise = api
	git := a.host.Handler(hooks)
	gateway := http.StripPrefix("/gateway", a.parts.gateway)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/git/"):
			w.Header().Set("Cache-Control", "no-store")
			op.Name(w.Header(), r)
			git.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/gateway/"):
			w.Header().Set("Cache-Control", "no-store")
			op.Name(w.Header(), r)
			gateway.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// ledger keeps the answers to writes with an Idempotency-Key.
func (a *App) ledger() *idempotency.Ledger {
	return &idempotency.Ledger{DB: a.db, Hub: a.hub, Logger: a.log}
}

// keeper mends what a clock that was set back has put off.
func (a *App) keeper() *clock.Keeper {
	return &clock.Keeper{DB: a.db, Lease: a.cfg.Lease, Logger: a.log}
}

// presented reads what a request brought to prove who calls.
func presented(r *http.Request, g op.Guard) signin.Presented {
	p := signin.Presented{Account: r.Header.Get("X-Svc-Account")}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		p.Write = true
	}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		p.Bearer = strings.TrimSpace(token)
		return p
	} else if r.Header.Get("Authorization") != "" {
		p.Bearer = "-" // of a kind that nobody here holds
		return p
	}
	if c, err := r.Cookie(signin.Cookie(strings.HasPrefix(g.BaseURL, "https:"))); err == nil {
		p.Session = c.Value
		if p.SameOrigin = g.FromOwnPage(r); !p.SameOrigin && p.Write {
			p.Came = g.Came(r)
		}
	}
	return p
}
