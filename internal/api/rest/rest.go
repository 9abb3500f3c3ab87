// Package rest serves ops over HTTP: each under the method and the path of its row. It
// makes an op.Call of a request, lets the pipeline carry it out, and writes the
// op.Answer.
//
//	rest.go      the routes
//	serve.go     requests as calls, and answers as responses
//	asset.go     documents that clients keep; coding.go compressed bodies; tail.go streams
//	cors.go      which scripts may read an answer; origin.go which pages may send a request
//	address.go   the address that a request comes from
//	slow.go      time limits for slow clients
//	note.go      the record of a request
package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

// Config configures a server of ops. Its zero value serves every row to everybody.
type Config struct {
	// Pipeline carries out the calls. Its BaseURL is an address of this server.
	Pipeline *op.Pipeline
	// Cookie is the name of the cookie that holds the session of a browser.
	// AccountHeader is the header that names the account of a call.
	Cookie, AccountHeader string
	// Proxies are the networks of trusted proxies, see Address.
	Proxies []netip.Prefix
	// Own are further addresses that people open the server at, such as
	// https://yard.example.com.
	Own []string
	// Origins are further sites whose pages may call rows for op.KnownPages, in
	// lower case, such as https://tools.example.com.
	Origins []string
	// Page makes the page that shows a failure to a person, the caller of ctx; nil: people get the
	// problem document, too. Programs are prefixes of the paths that only programs
	// call; no page is shown there, whatever Accept says.
	Page     func(ctx context.Context, f *fault.Error) (op.Reply, error)
	Programs []string
	// SecretParameters are the names of path parameters that are secrets. The record
	// of a request does not show them.
	SecretParameters []string
	// Patience is the time that a client may take to read an answer, plus a second
	// for each 4 KiB of it; zero: there is no limit. Streams have no limit.
	Patience time.Duration
}

// Handler serves the ops. Every response has X-Request-Id, also at an unknown path, and
// every failure is a problem document, or a page of Config.Page. Handler panics if two
// of the ops have the same method and path.
func Handler(g Config, ops []op.Op) http.Handler {
	if g.Pipeline == nil {
		g.Pipeline = &op.Pipeline{}
	}
	paths := map[string]methods{}
	s := &server{Config: g, mux: http.NewServeMux(), paths: paths}
	for i := range ops {
		o := &ops[i]
		m := paths[o.Path]
		if m == nil {
			m = methods{}
			paths[o.Path] = m
			if slices.ContainsFunc(strings.Split(o.Path, "/"), s.isSecret) {
				s.secretive = append(s.secretive, o.Path)
			}
		}
		if o.Slash {
			s.slashed = append(s.slashed, o.Path+"/")
		}
		if m[o.Method] != nil {
			panic(fmt.Sprintf("op %s: %s %s is taken by %s", o.ID, o.Method, o.Path, m[o.Method].ID))
		}
		m[o.Method] = o
		pattern := o.Path
		if pattern == "/" {
			pattern = "/{$}"
		}
		// The pattern has the method, because two paths may match the same
		// address (/a/{x}/b and /a/b/{y}) if they have different methods.
		s.mux.Handle(o.Method+" "+pattern, s.route(m))
	}
	return s
}

type methods map[string]*op.Op

// allow lists the methods of a path for the header Allow, without those of rows that do
// nothing but refuse them.
func (m methods) allow() string {
	return m.list(func(o *op.Op) bool { return o.Status != http.StatusMethodNotAllowed })
}

// all lists the methods of a path that are answered, be it with a refusal.
func (m methods) all() string { return m.list(func(*op.Op) bool { return true }) }

func (m methods) list(has func(*op.Op) bool) string {
	var out []string
	for k, o := range m {
		if !has(o) {
			continue
		}
		if out = append(out, k); k == "GET" && m["HEAD"] == nil {
			out = append(out, "HEAD")
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

type server struct {
	Config
	mux   *http.ServeMux
	paths map[string]methods

	slashed   []string // the paths that may end with a slash
	secretive []string // the paths that have a parameter that is a secret
}

const requestID = "X-Request-Id"

// Name returns the id of a request, and sets it in the response: the id that the caller
// sent, if it is printable ASCII of at most 200 characters, else a new one. Handlers
// beside the ops use Name, too.
func Name(h http.Header, req *http.Request) string {
	name := req.Header.Get(requestID)
	if !printable(name) {
		name = id.New()
	}
	h.Set(requestID, name)
	return name
}

func printable(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// isClean tells whether a path is written as every other that means the same. A slash may
// end it where the pattern takes the rest of the path.
func isClean(p, pattern string) bool {
	clean := path.Clean(p)
	return p == clean || p == clean+"/" && strings.HasSuffix(pattern, "...}")
}

// isText tells whether a path can be stored and shown.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	Name(w.Header(), req)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// An answer is for its caller alone unless it says otherwise.
	w.Header().Set("Cache-Control", "no-store")
	w = s.pace(w)
	if slices.Contains(s.slashed, req.URL.Path) {
		to := *req.URL
		to.Path, to.RawPath = strings.TrimSuffix(to.Path, "/"), ""
		req.URL = &to
	}
	pattern := s.match(req)
	var other methods // of a path that exists, but not with this method
	if pattern == "" {
		pattern = s.otherwise(req)
		other = s.paths[pattern]
	}
	if pattern == "" || !isClean(req.URL.Path, pattern) || !isText(req.URL.Path) {
		s.note(req, "")
		s.refuse(w, req, fault.New(fault.NotFound, "", "There is nothing at this path."), "")
		return
	}
	s.note(req, pattern)
	if other != nil {
		s.route(other).ServeHTTP(w, req)
		return
	}
	s.mux.ServeHTTP(w, req)
}

// otherwise returns the path of a row that the request would match with another method;
// empty if there is none.
func (s *server) otherwise(req *http.Request) string {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if path := s.match(&http.Request{Method: method, URL: req.URL, Host: req.Host}); path != "" {
			return path
		}
	}
	return ""
}

// match returns the path of the row that answers a request; empty if there is none. A path of
// the API that takes the rest has one: the way to it without its last slash, to which the mux
// would send the caller on, is another path.
func (s *server) match(req *http.Request) string {
	_, pattern := s.mux.Handler(req)
	_, pattern, _ = strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
	if strings.HasPrefix(pattern, "/v1/") && strings.HasSuffix(pattern, "...}") &&
		strings.Count(req.URL.EscapedPath(), "/") < strings.Count(pattern, "/") {
		return ""
	}
	return pattern
}

func (s *server) route(m methods) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if allowed, asks := s.scripts(w.Header(), req, m); asks && req.Method == http.MethodOptions {
			s.preflight(w, req, m, allowed)
			return
		}
		method := req.Method
		if method == http.MethodHead && m[method] == nil {
			method = http.MethodGet
		}
		o := m[method]
		if o == nil {
			allow := m.allow()
			s.refuse(w, req, fault.Newf(fault.MethodNotAllowed, "", "This path takes %s.", allow), allow)
			return
		}
		s.serve(w, req, o)
	})
}
