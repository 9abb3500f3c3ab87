package op

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Guard is what the pipeline asks of the rest of the program.
type Guard struct {
	// Authenticate resolves the credential of a request. No credential is the
	// anonymous actor; a bad one is an error.
	Authenticate func(context.Context, *http.Request) (policy.Actor, error)
	// Enter prepares the context of a request that passed its rule.
	Enter  func(context.Context, policy.Actor) context.Context
	Logger *slog.Logger
	// Limits counts requests; without it nothing is limited.
	Limits limit.Limiter
	// Ledger remembers the answers to idempotent writes; without it the header
	// is ignored.
	Ledger Ledger
	// Proxies are the networks whose word is taken for where a request comes
	// from.
	Proxies []netip.Prefix
	// BaseURL is the address in problem types, without a trailing slash. Pages
	// of it are the server's own.
	BaseURL string
	// Own are further addresses that people open the server at, such as
	// https://yard.example.com.
	Own []string
	// Origins are further sites whose pages may call rows for KnownPages, in
	// lower case, such as https://tools.example.com.
	Origins []string
	// Page makes of a failure what a person in front of a browser is shown;
	// without it they get the problem document, too.
	Page func(f *fault.Error, requestID string) (Reply, error)
	// Patience is how long a client may take to read an answer, and another
	// second for every 4 KiB of it; zero is for ever. Streams take as long as
	// they take.
	Patience time.Duration
}

// Handler serves the ops. Every response carries X-Request-Id, an unmatched
// path included, and every failure is a problem document.
func Handler(g Guard, ops []Op) http.Handler {
	paths := map[string]methods{}
	s := &server{Guard: g, mux: http.NewServeMux(), paths: paths}
	for i := range ops {
		o := &ops[i]
		m := paths[o.Path]
		if m == nil {
			m = methods{}
			paths[o.Path] = m
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

type methods map[string]*Op

// allow lists the methods of a path, less that of a row that refuses its own.
func (m methods) allow(but *Op) string {
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
	Guard
	mux   *http.ServeMux
	paths map[string]methods
}

// Request is what a handler may know of the request besides its input.
type Request struct {
	ID      string
	IP      string // of the caller, past trusted proxies
	BaseURL string
	Secure  bool // over https, or a proxy says so
}

type requestKey struct{}

// RequestOf finds the request being served.
func RequestOf(ctx context.Context) Request {
	r, _ := ctx.Value(requestKey{}).(Request)
	return r
}

// Name gives a request its id, the caller's if it sent a usable one, and tells
// it in the response. It is for what is served beside the ops, too.
func Name(h http.Header, req *http.Request) (requestID string) {
	if requestID = req.Header.Get("X-Request-Id"); !printable(requestID) {
		requestID = id.New()
	}
	h.Set("X-Request-Id", requestID)
	return requestID
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rid := Name(w.Header(), req)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	// What is not said to be for everybody is for the caller alone.
	w.Header().Set("Cache-Control", "no-store")
	w = s.pace(w)
	r := Request{ID: rid, IP: clientOf(req, s.Proxies), BaseURL: s.BaseURL, Secure: req.TLS != nil || strings.HasPrefix(s.BaseURL, "https:")}
	req = req.WithContext(context.WithValue(req.Context(), requestKey{}, r))
	_, pattern := s.mux.Handler(req)
	var other methods // of a path that there is, but not for this method
	if pattern == "" {
		other = s.otherwise(req)
	}
	if pattern == "" && other == nil || req.URL.Path != path.Clean(req.URL.Path) || !isText(req.URL.Path) {
		err := s.knock(w.Header(), req, nil)
		if err == nil {
			err = fault.New(fault.NotFound, "", "There is nothing at this path.")
		}
		s.fail(w, req, nil, err)
		return
	}
	if other != nil {
		s.route(other).ServeHTTP(w, req)
		return
	}
	s.mux.ServeHTTP(w, req)
}

// otherwise finds the path that a request would have come to with another
// method.
func (s *server) otherwise(req *http.Request) methods {
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		_, pattern := s.mux.Handler(&http.Request{Method: method, URL: req.URL, Host: req.Host})
		if _, path, ok := strings.Cut(pattern, " "); ok {
			return s.paths[strings.TrimSuffix(path, "{$}")]
		}
	}
	return nil
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
			err := s.knock(w.Header(), req, nil)
			if err == nil {
				w.Header().Set("Allow", allow)
				err = fault.Newf(fault.MethodNotAllowed, "", "This path takes %s.", allow)
			}
			s.fail(w, req, nil, err)
			return
		}
		s.serve(w, req, o)
	})
}

func (s *server) serve(w http.ResponseWriter, req *http.Request, o *Op) {
	start := time.Now()
	rw := &recorder{ResponseWriter: w}
	var err error
	var actor policy.Actor
	defer func() {
		if p := recover(); p != nil {
			if e, ok := p.(error); ok && errors.Is(e, http.ErrAbortHandler) {
				panic(p)
			}
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			if rw.status == 0 {
				s.fail(rw, req, o, err)
			}
		}
		s.record(req, o, rw, actor, time.Since(start), err)
	}()
	if actor, err = s.admit(rw.Header(), req, o); err == nil {
		ctx := req.Context()
		if s.Enter != nil {
			ctx = s.Enter(ctx, actor)
		}
		if o.Inside {
			ctx = context.WithValue(ctx, exchangeKey{}, &exchange{server: s, req: req, h: rw.Header()})
		}
		ctx = policy.With(ctx, actor)
		if o.Holder != nil {
			if ctx, err = o.Holder.Admit(ctx, req.Header.Get("Authorization")); err == nil {
				actor = policy.From(ctx)
			}
		}
		req = req.WithContext(ctx)
		bind := func(in any) error { return o.bind(req, in) }
		var use Use
		var sent bool
		if err == nil {
			use, sent, err = s.use(req, o, actor)
		}
		switch {
		case err != nil:
		case sent:
			err = s.once(rw, req, o, actor, use)
		case o.stream != nil:
			err = s.stream(rw, req, o, bind)
		default:
			err = s.run(rw, req, o, bind)
		}
	}
	err = ended(req, err)
	if err != nil && rw.status == 0 {
		s.fail(rw, req, o, err)
	}
}

// run has the handler answer.
func (s *server) run(w http.ResponseWriter, req *http.Request, o *Op, bind func(any) error) error {
	out, err := o.run(req.Context(), bind)
	if err == nil {
		err = s.answer(w, req, o, out)
	}
	return err
}

// ended makes of the end of a request, where it is why it failed, a failure
// that may be tried again: the caller has gone, or we are stopping.
func ended(req *http.Request, err error) error {
	if errors.Is(err, context.Canceled) && req.Context().Err() != nil {
		return fault.New(fault.Unavailable, "", "The request was ended before it was answered.").Because(err)
	}
	return err
}

// admit answers who calls, once there is room for the call and the rule allows
// it.
func (s *server) admit(h http.Header, req *http.Request, o *Op) (policy.Actor, error) {
	if err := s.knock(h, req, o); err != nil {
		return policy.Actor{}, err
	}
	if err := s.comesFrom(req, o); err != nil {
		return policy.Actor{}, err
	}
	if s.Authenticate == nil {
		return policy.Actor{}, nil
	}
	actor, err := s.Authenticate(req.Context(), req)
	if o.Rule.IsPublic() {
		// A bad credential on a public row is as good as none.
		if err != nil {
			actor, err = policy.Actor{}, nil
		}
	}
	if err != nil {
		return policy.Actor{}, err
	}
	actor.RequestID = RequestOf(req.Context()).ID
	if !o.Rule.IsPublic() && !o.Inside && !actor.Anonymous() {
		if err := s.charge(h, actor, writes(req.Method), ""); err != nil {
			return actor, err
		}
	}
	return actor, o.Rule.Check(actor)
}

// still tells whether the caller of an open stream may go on listening. What
// keeps us from finding out does not.
func (s *server) still(ctx context.Context, req *http.Request, o *Op) error {
	if s.Authenticate == nil || o.Rule.IsPublic() {
		return nil
	}
	actor, err := s.Authenticate(ctx, req)
	if err == nil {
		err = o.Rule.Check(actor)
	}
	if was := policy.From(ctx); err == nil {
		switch lost := was.Scopes &^ actor.Scopes; {
		case actor.AccountID != was.AccountID:
			err = fault.New(fault.Forbidden, "", "The credential acts for another account now. Connect again.")
		case len(o.Rule.Names()) == 0 && lost != 0: // what it follows was chosen by what it held
			err = policy.MissingScope(lost)
		}
	}
	if fault.IsKind(err, fault.Unauthenticated) || fault.IsKind(err, fault.Forbidden) {
		return err
	}
	return nil
}

func (s *server) stream(w http.ResponseWriter, req *http.Request, o *Op, bind func(any) error) error {
	last := req.Header.Get("Last-Event-ID")
	if last != "" && !o.Resume {
		return fault.Field("Last-Event-ID", "this stream cannot be resumed; connect without it")
	}
	ctx, cancel := context.WithCancel(req.Context())
	unpace(w)
	sink := &Sink{w: w, rc: http.NewResponseController(w), last: last}
	var shut error
	stop := sink.keepAlive(func() error {
		err := s.still(ctx, req, o)
		if ctx.Err() != nil {
			return nil // what we wanted to know, nobody waits for
		}
		return err
	}, func(err error) {
		shut = err
		cancel()
	})
	err := o.stream(ctx, bind, sink)
	cancel()
	stop() // nothing may be written once we have returned
	if shut != nil {
		err = shut
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil && sink.opened {
		_ = sink.Send("", "error", s.problem(req, fault.From(err))) // the client may be gone, too
	}
	return err
}

func (s *server) answer(w http.ResponseWriter, req *http.Request, o *Op, out any) error {
	status := o.Status
	if c, ok := out.(Statuser); ok {
		status = c.StatusCode()
	}
	h := w.Header()
	if a, ok := out.(*Asset); ok {
		a.serve(w, req)
		return nil
	}
	contentType := "application/json"
	if r, ok := out.(Reply); ok {
		if r.Status != 0 {
			status = r.Status
		}
		for k, v := range r.Header {
			h.Set(k, v)
		}
		for _, c := range r.Cookies {
			h.Add("Set-Cookie", c)
		}
		if r.ContentType != "" {
			contentType = r.ContentType
		}
		out = r.Body
	}
	var body []byte
	switch b := out.(type) {
	case []byte:
		body = b
	case string:
		body = []byte(b)
	default:
		buf := buffers.Get().(*bytes.Buffer)
		buf.Reset()
		defer buffers.Put(buf)
		if err := json.MarshalWrite(buf, out, wire); err != nil {
			return fmt.Errorf("encode the answer of %s: %w", o.ID, err)
		}
		body = buf.Bytes()
	}
	h.Set("Content-Type", contentType)
	o.deliver(w, req, status, body)
	return nil
}

// record writes the one log line of a request.
func (s *server) record(req *http.Request, o *Op, w *recorder, a policy.Actor, d time.Duration, err error) {
	if s.Logger == nil {
		return
	}
	level := slog.LevelInfo
	if err != nil && w.status >= 500 {
		level = slog.LevelError
	}
	if !s.Logger.Enabled(req.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("op", o.ID), slog.Int("status", w.status), slog.Duration("took", d),
		slog.String("actor", a.Label()), slog.String("request_id", RequestOf(req.Context()).ID),
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.Logger.LogAttrs(req.Context(), level, "request", attrs...)
}

type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
