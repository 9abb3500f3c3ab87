package app

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/api/held"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/blob"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
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

// ofBoxes are the paths that boxes alone call, and those below.
var ofBoxes = []string{"/gateway/", "/v1/runners/enroll", "/v1/runners/creds/reissue", "/v1/runners/hardening"}

// setApart are the requests that have room of their own, whatever else is open.
func setApart(most held.Limits) []held.Apart {
	return []held.Apart{
		{Name: "health", Most: max(min(most.All/16, 16), 1), Is: func(r *http.Request) bool {
			return r.URL.Path == "/healthz" || r.URL.Path == "/readyz"
		}},
		{Name: "boxes", Most: max(most.All/8, 1), Is: func(r *http.Request) bool {
			return slices.ContainsFunc(ofBoxes, func(p string) bool { return strings.HasPrefix(r.URL.Path, p) })
		}},
		{Name: "deliveries", Most: max(most.All/16, 1), Is: func(r *http.Request) bool {
			return strings.HasPrefix(r.URL.Path, inbound)
		}},
	}
}

// roomFor lets requests to next within the limits of what may be open at once.
func (a *App) roomFor(next http.Handler) http.Handler {
	r := &held.Room{
		Limits: a.most(), Apart: setApart(a.most()), Refuse: a.refuseRequest,
		Address: func(req *http.Request) string { return rest.Address(req, a.cfg.Proxies) },
		Strange: func(req *http.Request) bool {
			if strings.HasPrefix(req.URL.Path, blob.Path) {
				return false // its address is signed, which is looked at before the body
			}
			return req.Header.Get("Authorization") == "" && req.Header.Get("Cookie") == "" || strings.HasPrefix(req.URL.Path, inbound)
		},
		StrangersTime: 2 * a.cfg.BodyTime, Now: a.clock,
	}
	return r.Handler(next)
}

// conns counts the connections of the server.
func (a *App) conns() *held.Conns { return held.NewConns(a.most(), a.cfg.Proxies, a.refusedConn()) }

// refuseRequest answers a request with a fault, before anything else looks at it.
func (a *App) refuseRequest(w http.ResponseWriter, req *http.Request, f *fault.Error) {
	answer := (&op.Pipeline{BaseURL: a.base}).Refuse(&op.Call{
		Path: req.URL.Path, Request: op.Request{ID: rest.Name(w.Header(), req), IP: rest.Address(req, a.cfg.Proxies)},
	}, f)
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
