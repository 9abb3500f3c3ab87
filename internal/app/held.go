package app

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/api/held"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/relay"
	"yardmaster/internal/domain/lfs"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
	"yardmaster/internal/rlimit"
)

// most are the most connections, by the configuration and the files that the process may open.
func (a *App) most() held.Limits {
	return held.From(rlimit.Files(), a.cfg.Connections, a.cfg.AddressConns)
}

// mostOpen are the most streams and calls. Half of the connections are for other calls than
// streams, and an account has a quarter of all.
func (a *App) mostOpen() op.Open {
	all := a.most().All
	return op.Open{
		StreamsPerCredential: a.cfg.Streams, StreamsPerAccount: a.cfg.AccountStreams, Streams: max(all/2, 1),
		CallsPerCredential: max(all/8, 1), CallsPerAccount: max(all/4, 1),
	}
}

// inbound begins the paths of deliveries, which are signed and present no credential.
const inbound = "/v1/inbound/"

// deliveryTime is the longest that the body of a delivery may take.
const deliveryTime = 30 * time.Second

// boxes is the room of boxes and of what runs on them.
const boxes = "boxes"

// signIns are the paths by which people, their programs and boxes come to a credential, and
// those below.
var signIns = []string{"/auth/", "/login", "/ui/", "/oauth/", "/v1/runners/enroll"}

// signInBody is the most that strangers may send there, in bytes.
const signInBody = 64 << 10

// setApart are the requests that have room of their own, whatever else is open.
func (a *App) setApart(all int) []held.Apart {
	signIn := max(all/12, 1)
	return []held.Apart{
		{Name: "health", Most: max(min(all/16, 16), 1), Is: func(r *http.Request) bool {
			return r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		}},
		{Name: boxes, Most: max(all/8, 1), Own: true},
		{Name: "deliveries", Most: max(all/16, 1), Time: min(a.cfg.BodyTime, deliveryTime), Is: func(r *http.Request) bool {
			return strings.HasPrefix(r.URL.Path, inbound)
		}},
		{Name: "sign-in", Most: signIn, PerAddress: max(signIn/4, min(signIn/2, 6), 1), Time: a.cfg.BodyTime / 6, Body: signInBody,
			Is: func(r *http.Request) bool {
				return slices.ContainsFunc(signIns, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) })
			}},
		// The first request of git presents nothing, and is answered at once that it has to.
		{Name: "git", Most: max(all/32, 1), Is: func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/git/") && r.Header.Get("Authorization") == "" &&
				strings.HasSuffix(r.URL.Path, "/info/refs")
		}},
	}
}

// roomFor lets requests to next within the limits of what may be open at once.
func (a *App) roomFor(next http.Handler) http.Handler {
	most := a.most()
	cookie := signin.Cookie(strings.HasPrefix(a.base, "https:"))
	r := &held.Room{
		Limits: most, Apart: a.setApart(most.All), Checks: max(most.All/32, 1), Refuse: a.refuseRequest,
		Address: func(req *http.Request) string { return rest.Address(req, a.cfg.Proxies) },
		Shows: func(req *http.Request) bool {
			if strings.HasPrefix(req.URL.Path, inbound) {
				return false
			}
			if strings.HasPrefix(req.URL.Path, blob.Path) || lfs.IsTransfer(req.URL.Path) ||
				strings.HasPrefix(req.URL.Path, relay.ObjectPath) || strings.HasPrefix(req.URL.Path, "/gateway/") {
				return true // an address that is signed, and one where nothing is read without a token
			}
			if req.Header.Get("Authorization") != "" {
				return true
			}
			_, err := req.Cookie(cookie)
			return err == nil
		},
		StrangersTime: 2 * a.cfg.BodyTime,
	}
	return r.Handler(next)
}

// settle tells the room whose call it is.
func settle(ctx context.Context, actor policy.Actor, known bool) error {
	switch {
	case !known:
		return held.Stranger(ctx)
	case actor.Credential == policy.Box:
		return held.Known(ctx, boxes, nil)
	}
	return held.Known(ctx, "", nil)
}

// gitAccess decides about requests of git, and counts them for the credential and its account.
func (a *App) gitAccess(ctx context.Context, user, password string, r codehost.Repo) (codehost.Access, error) {
	access, err := a.parts.repo.Access(ctx, user, password, r)
	if err != nil || access.Credential == "" { // a credential that is good elsewhere is answered at once
		return access, err
	}
	own := ""
	if strings.HasPrefix(access.Who, "run:") {
		own = boxes
	}
	return access, held.Known(ctx, own, func() (func(), error) { return a.calls.Hold(access.Credential, access.Account) })
}

// modelCalls implements gateway.Counts.
type modelCalls struct{ a *App }

// Hold counts a call of the model gateway.
func (m modelCalls) Hold(ctx context.Context, session, account string) error {
	return held.Known(ctx, boxes, func() (func(), error) { return m.a.calls.Hold("session:"+session, account) })
}

// refuseRequest answers a request with a fault, before anything else looks at it.
func (a *App) refuseRequest(w http.ResponseWriter, req *http.Request, f *fault.Error) {
	answer := (&op.Pipeline{BaseURL: a.base}).Refuse(&op.Call{
		Path: req.URL.Path, Request: op.Request{ID: rest.Name(w.Header(), req), IP: rest.Address(req, a.cfg.Proxies)},
	}, f)
	observe.Of(req.Context()).Slug = f.Slug
	for name, value := range refusalHeader(answer) {
		w.Header()[name] = value
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(answer.Body)
}

func refusalHeader(answer op.Answer) http.Header {
	h := http.Header{}
	h.Set("Content-Type", answer.ContentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Retry-After", strconv.Itoa(answer.RetryAfter))
	return h
}

// refusedConn is the response for connections that are refused before they have asked for
// anything.
func (a *App) refusedConn() []byte {
	name := id.New()
	answer := (&op.Pipeline{BaseURL: a.base}).Refuse(&op.Call{Path: "/", Request: op.Request{ID: name}},
		op.TooMuchOpen("The server has as many connections as it may have, or your address has. Try again."))
	resp := http.Response{
		StatusCode: answer.Status, ProtoMajor: 1, ProtoMinor: 1, Header: refusalHeader(answer), Close: true,
		Body: io.NopCloser(bytes.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)),
	}
	resp.Header.Set("X-Request-Id", name)
	var b bytes.Buffer
	if err := resp.Write(&b); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
}
