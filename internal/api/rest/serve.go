package rest

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// texts are the op.Texts of a request.
type texts struct{ *http.Request }

func (t texts) Path(name string) string   { return t.PathValue(name) }
func (t texts) Header(name string) string { return t.Request.Header.Get(name) }

// call makes an op.Call of a request; o is nil if the request matches no op.
func (s *server) call(w http.ResponseWriter, req *http.Request, o *op.Op) *op.Call {
	c := &op.Call{
		Op: o, Path: req.URL.Path, Changes: op.Writes(req.Method),
		Request: op.Request{
			ID: w.Header().Get(requestID), IP: Address(req, s.Proxies), BaseURL: s.Pipeline.BaseURL, Home: s.Pipeline.Home,
			Secure: req.TLS != nil || strings.HasPrefix(s.Pipeline.BaseURL, "https:"), Query: req.URL.RawQuery,
		},
	}
	observe.Of(req.Context()).Address = c.Request.IP
	if o == nil {
		return c
	}
	c.Refused = s.comesFrom(req, o.From)
	c.Presented = s.presented(req)
	c.Request.Bare = c.Presented.Bearer == "" && c.Presented.Session == ""
	if o.From == op.OwnForms && c.Refused == nil {
		c.Presented.SameOrigin = true
	}
	c.Sent = op.Sent{
		Texts: texts{req}, Query: req.URL.RawQuery,
		Body: req.Body, Length: req.ContentLength, ContentType: req.Header.Get("Content-Type"),
	}
	if c.Keys = req.Header[op.KeyHeader]; len(c.Keys) > 0 {
		c.Bound = []string{req.Method, req.URL.RequestURI()}
	}
	if o.IsStream() {
		c.Last, c.Tail = req.Header.Get("Last-Event-ID"), &tail{w, http.NewResponseController(w)}
	}
	return c
}

// presented reads the credentials of a request.
func (s *server) presented(req *http.Request) op.Presented {
	p := op.Presented{Write: op.Writes(req.Method)}
	if s.AccountHeader != "" {
		p.Account = req.Header.Get(s.AccountHeader)
	}
	authorization := req.Header.Get("Authorization")
	if scheme, token, ok := strings.Cut(authorization, " "); ok && strings.EqualFold(scheme, "Bearer") {
		p.Bearer = strings.TrimSpace(token)
		return p
	}
	if authorization != "" {
		p.Bearer = "-" // no token is "-": an unknown scheme is a bad credential
		return p
	}
	if s.Cookie == "" {
		return p
	}
	if c, err := req.Cookie(s.Cookie); err == nil {
		p.Session = c.Value
		if p.SameOrigin = s.fromOwnPage(req); !p.SameOrigin && p.Write {
			p.Came = s.came(req)
		}
	}
	return p
}

// serve answers a request for an op.
func (s *server) serve(w http.ResponseWriter, req *http.Request, o *op.Op) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			r := observe.Of(req.Context()) // the panic came while the answer was written, which breaks off
			r.Cause, r.Broken = fmt.Errorf("panic: %v\n%s", p, debug.Stack()), true
		}
	}()
	c := s.call(w, req, o)
	a := s.Pipeline.Do(req.Context(), c)
	s.write(w, req, c, &a)
	a.Free()
}

// refuse answers a request that matches no op with err, after its address was counted.
// allow is the header Allow of that answer, empty for none.
func (s *server) refuse(w http.ResponseWriter, req *http.Request, err *fault.Error, allow string) {
	c := s.call(w, req, nil)
	c.Refused = err
	a := s.Pipeline.Do(req.Context(), c)
	if a.Failure == err && allow != "" {
		w.Header().Set("Allow", allow)
	}
	s.write(w, req, c, &a)
}

// write writes an answer, unless it was a stream, which is written already.
func (s *server) write(w http.ResponseWriter, req *http.Request, c *op.Call, a *op.Answer) {
	if a.Streamed {
		return
	}
	h := w.Header()
	if l := a.Limit; l != nil {
		h.Set("RateLimit-Limit", strconv.Itoa(l.Limit))
		h.Set("RateLimit-Remaining", strconv.Itoa(l.Remaining))
		h.Set("RateLimit-Reset", strconv.Itoa(l.Reset))
	}
	if f := a.Failure; f != nil && (f.Kind == fault.RateLimited || f.Slug == op.SlugOpen) {
		h.Set("Connection", "close") // who is refused for asking too much keeps nothing open
	}
	if a.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(a.RetryAfter))
	}
	if a.Replayed {
		h.Set("X-Idempotent-Replayed", "true")
	}
	if a.Failure != nil {
		s.explain(h, c.Op, a.Failure)
		if page, ok := s.page(req, c, a); ok {
			h.Add("Vary", "Accept")
			a = page
		}
	}
	for k, v := range a.Header {
		h.Set(k, v)
	}
	for _, cookie := range a.Cookies {
		h.Add("Set-Cookie", cookie)
	}
	if a.Asset != nil {
		s.asset(w, req, a.Asset)
		return
	}
	h.Set("Content-Type", a.ContentType)
	deliver(w, req, a)
}

// explain sets the headers that tell a program how to correct its request.
func (s *server) explain(h http.Header, o *op.Op, f *fault.Error) {
	if f.Kind == fault.Unauthenticated {
		challenge := "Bearer"
		if o != nil && o.Resource != "" {
			challenge += ` resource_metadata="` + s.Pipeline.BaseURL + o.Resource + `"`
		}
		h.Set("WWW-Authenticate", challenge)
	}
	if f.Kind == fault.MethodNotAllowed && o != nil {
		h.Set("Allow", s.paths[o.Path].allow())
	}
}

// page makes the page that a person is shown instead of a problem; false if the answer
// is to be the problem document.
func (s *server) page(req *http.Request, c *op.Call, failed *op.Answer) (*op.Answer, bool) {
	if s.Page == nil || !op.PrefersPage(req.Header.Get("Accept")) {
		return nil, false
	}
	for _, p := range s.Programs {
		if strings.HasPrefix(req.URL.Path, p) {
			return nil, false
		}
	}
	r, err := s.Page(c.Context(req.Context(), failed.Actor), failed.Failure)
	if err != nil {
		return nil, false
	}
	a := s.Pipeline.Reply(c, r)
	return &a, a.Failure == nil
}
