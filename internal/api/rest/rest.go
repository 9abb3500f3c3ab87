// Package rest serves ops over HTTP: each under the method and the path of its
// row. It makes an op.Call of a request, has the pipeline carry it out, and
// writes the op.Answer: headers, cookies, pages for people, documents that
// clients keep, compressed bodies, event streams. What only HTTP has is decided
// here: which path is meant, which pages of browsers may ask (cors.go,
// origin.go), whose word is taken for where a request comes from (address.go),
// and how long a slow client is waited for (slow.go).
package rest

import (
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

// Config is what a server of ops needs to know. Its zero value serves every row
// to everybody.
type Config struct {
	// Pipeline carries out the calls. Pages of its BaseURL are the server's own.
	Pipeline *op.Pipeline
	// Cookie is the name of the cookie that holds a browser's session, and
	// AccountHeader the header that names the account a call is about.
	Cookie, AccountHeader string
	// Proxies are the networks whose word is taken for where a request comes
	// from.
	Proxies []netip.Prefix
	// Own are further addresses that people open the server at, such as
	// https://yard.example.com.
	Own []string
	// Origins are further sites whose pages may call rows for op.KnownPages, in
	// lower case, such as https://tools.example.com.
	Origins []string
	// Page makes of a failure what a person in front of a browser is shown;
	// without it they get the problem document, too. Programs are the paths, by
	// how they begin, that only programs call, whatever they say they like to
	// read.
	Page     func(f *fault.Error, requestID string) (op.Reply, error)
	Programs []string
	// SecretParameters are the names of path parameters that are secrets, which the
	// record of a request does not show.
	SecretParameters []string
	// Patience is how long a client may take to read an answer, and another
	// second for every 4 KiB of it; zero is for ever. Streams take as long as
	// they take.
	Patience time.Duration
}

// Handler serves the ops. Every response carries X-Request-Id, an unmatched
// path included, and every failure is a problem document. It panics if two of
// the ops have the same method and path.
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
		if m[o.Method] != nil {
			panic(fmt.Sprintf("op %s: %s %s is taken by %s", o.ID, o.Method, o.Path, m[o.Method].ID))
		}
		m[o.Method] = o
		pattern := o.Path
		if pattern == "/" {
			pattern = "/{$}"
		}
		// By method, because two paths may both be like one address
		// (/a/{x}/b and /a/b/{y}), as long as no method has both.
		s.mux.Handle(o.Method+" "+pattern, s.route(m))
	}
	return s
}

type methods map[string]*op.Op

// allow lists the methods of a path, less that of a row that refuses its own.
func (m methods) allow(but *op.Op) string {
	var out []string
	for k, o := range m {
		if o == but {
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
	mux    *http.ServeMux
	paths  map[string]methods
	assets sync.Map // by *op.Asset, its forms

	secretive []string // those of paths that have a parameter that is a secret
}

const requestID = "X-Request-Id"

// Name gives a request its id, the caller's if it sent a usable one, and tells
// it in the response. It is for what is served beside the ops, too.
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

// isText tells whether a path can be stored and shown.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	Name(w.Header(), req)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// What is not said to be for everybody is for the caller alone.
	w.Header().Set("Cache-Control", "no-store")
	w = s.pace(w)
	_, pattern := s.mux.Handler(req)
	_, pattern, _ = strings.Cut(strings.TrimSuffix(pattern, "{$}"), " ")
	var other methods // of a path that there is, but not for this method
	if pattern == "" {
		pattern = s.otherwise(req)
		other = s.paths[pattern]
	}
	if pattern == "" || req.URL.Path != path.Clean(req.URL.Path) || !isText(req.URL.Path) {
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

// otherwise finds the path of a row that a request would have come to with
// another method; empty if there is none.
func (s *server) otherwise(req *http.Request) string {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		_, pattern := s.mux.Handler(&http.Request{Method: method, URL: req.URL, Host: req.Host})
		if _, path, ok := strings.Cut(pattern, " "); ok {
			return strings.TrimSuffix(path, "{$}")
		}
	}
	return ""
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
			allow := m.allow(nil)
			s.refuse(w, req, fault.Newf(fault.MethodNotAllowed, "", "This path takes %s.", allow), allow)
			return
		}
		s.serve(w, req, o)
	})
}
