package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/app"
)

// fake is a server that answers what it was told to, by method and path, and notes each call.
type fake struct {
	*httptest.Server
	answers map[string]string
	refuses map[string]string // problems, by method and path
	mu      sync.Mutex
	calls   []string // method, path with its query, body
}

func newFake(t *testing.T, answers map[string]string) *fake {
	t.Helper()
	f := &fake{answers: answers}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		f.mu.Lock()
		f.calls = append(f.calls, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		f.mu.Unlock()
		for name := range r.URL.Query() {
			if o, ok := opOf(r); ok && o.Path != "/" && o.Input()[name] != "query" {
				t.Errorf("%s has no parameter %q, which %s is called with", o.ID, name, r.URL.Path)
			}
		}
		text, known := f.answers[r.Method+" "+r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if problem := f.refuses[r.Method+" "+r.URL.Path]; problem != "" {
			w.WriteHeader(http.StatusForbidden)
			text = problem
		} else if !known {
			w.WriteHeader(http.StatusNotFound)
			text = `{"type": "/problems/not-found", "status": 404, "detail": "There is no such thing."}`
		}
		io.WriteString(w, strings.ReplaceAll(text, "SERVER", f.URL))
	}))
	t.Cleanup(f.Close)
	return f
}

// routes are the paths of all capabilities.
var routes = sync.OnceValues(func() (*http.ServeMux, map[string]app.Op) {
	mux, ops := http.NewServeMux(), map[string]app.Op{}
	for _, o := range app.Ops() {
		at := o.Method + " " + o.Path
		if _, twice := ops[at]; !twice {
			ops[at] = o
			mux.HandleFunc(at, http.NotFound)
		}
	}
	return mux, ops
})

// opOf is the capability that a request is for.
func opOf(r *http.Request) (app.Op, bool) {
	mux, ops := routes()
	_, at := mux.Handler(r)
	o, ok := ops[at]
	return o, ok
}

// was tells whether there was a call that has all of the parts.
func (f *fake) was(parts ...string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.calls, func(call string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(call, p) })
	})
}

// person is somebody who is signed in there.
func (f *fake) person(t *testing.T, env ...string) *person {
	return newPerson(t, append(env, "YARDMASTER_URL="+f.URL, "YARDMASTER_TOKEN=t", "NO_COLOR=1")...)
}

// holds plays command lines on a terminal, and holds what each must and must not show.
func (p *person) holds(line string, code int, shows ...string) string {
	p.t.Helper()
	args := word.FindAllString(line, -1)
	for i := range args {
		args[i] = strings.Trim(args[i], `'"`)
	}
	shown, got := p.terminal(args)
	shown = strings.ReplaceAll(shown, "\r\n", "\n")
	if got != code {
		p.t.Errorf("%s: exit code %d, not %d:\n%s", line, got, code, shown)
	}
	for _, want := range shows {
		not, no := strings.CutPrefix(want, "!")
		if strings.Contains(shown, not) == no {
			p.t.Errorf("%s: %q is not so in:\n%s", line, want, shown)
		}
	}
	return shown
}
