package transcript

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/app"
	"yardmaster/internal/proof/document"
	"yardmaster/internal/proof/provider"
)

var theJudge = sync.OnceValues(func() (*document.Judge, error) {
	b, err := app.Document()
	if err != nil {
		return nil, err
	}
	return document.NewJudge(b)
})

// router finds the row of a request.
var router = sync.OnceValue(func() func(method, path string) (op.Op, bool) {
	mux := http.NewServeMux()
	rows := map[string]op.Op{}
	for _, o := range app.Ops() {
		pattern := o.Method + " " + o.Path
		if o.Path == "/" {
			pattern += "{$}"
		}
		rows[pattern] = o
		mux.Handle(pattern, http.NotFoundHandler())
	}
	return func(method, path string) (op.Op, bool) {
		req, err := http.NewRequest(method, "http://any"+path, nil)
		if err != nil {
			return op.Op{}, false
		}
		_, pattern := mux.Handler(req)
		o, ok := rows[pattern]
		return o, ok
	}
})

// perform plays a transcript on a fresh server.
func (tr transcript) perform(t *testing.T, w way, kept *record) {
	tr.tools = w.tools
	var y *yard
	var p *provider.Provider
	var there *host
	port := "" // of a machine
	switch tr.steps[0].verb {
	case "fresh":
		y = boot(t, w.engine)
	case "inside":
		y = start(t, w.engine, "--allow-networks", "127.0.0.0/8")
	case "machine":
		y, port = startWithMachine(t, w.engine)
	case "github":
		y = startAtGitHub(t, w.engine)
	case "provider":
		p = provider.New(t)
		p.Is(map[string]any{"sub": "1", "id": 1, "login": "eva", "name": "Eva", "email": "eva@acme.example", "email_verified": true})
		p.Set(func() { p.Emails = []map[string]any{{"email": "ada@example.com", "verified": true, "primary": true}} })
		y = start(t, w.engine, "--allow-networks", "127.0.0.0/8", "--github-url", p.URL,
			"--github-client-id", provider.Client, "--github-client-secret", provider.Secret)
	case "codehost":
		there = newHost(t)
		y = start(t, w.engine, there.flags(t)...)
		there.install(t, y)
	default:
		y = start(t, w.engine)
	}
	y.watchAnswers()
	judge, err := theJudge()
	if err != nil {
		t.Fatal(err)
	}
	k := talk{
		yard: y, transcript: tr, record: kept, find: router(), judge: judge,
		known: values{"url": y.URL(), "setup": y.Setup, "owner": y.Owner},
	}
	if there != nil {
		there.tell(k.known)
	}
	if port != "" {
		k.known["port"] = port
	}
	if p != nil {
		k.known["provider"] = p.URL
	}
	for i := range tr.steps {
		s := &tr.steps[i]
		if s.verb != "" {
			k.prepare(t, *s)
			continue
		}
		// Later steps depend on this one.
		if !t.Run(s.name, func(t *testing.T) { k.step(t, s) }) {
			return
		}
	}
	k.declared(t)
	if *update {
		if err := tr.rewrite(); err != nil {
			t.Fatal(err)
		}
	}
}

// collector is a server that takes whatever it is sent, for the rest of the transcript.
func collector(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	return s.URL
}

// talk is a transcript that is being played.
type talk struct {
	*yard
	transcript
	*record
	find  func(method, path string) (op.Op, bool)
	judge *document.Judge
	known values
}

// prepare carries out a step that begins with $.
func (k *talk) prepare(t *testing.T, s step) {
	k.T = t
	arg := func(n int) string {
		t.Helper()
		if n >= len(s.args) {
			t.Fatalf("%s: $ %s lacks a word", k.at(s), s.verb)
		}
		text, err := k.known.fill(s.args[n])
		if err != nil {
			t.Fatalf("%s: %v", k.at(s), err)
		}
		return text
	}
	switch s.verb {
	case "fresh", "inside", "machine", "provider", "github", "codehost":
	case "visit":
		k.known["back"] = k.visit(arg(0))
	case "collector":
		k.known["collector"] = collector(t)
	case "push":
		if err := k.Push(arg(0), s.files); err != nil {
			t.Fatal(err)
		}
	case "public":
		k.public(arg(0))
	case "box":
		k.Box(arg(0))
	case "person":
		login := arg(0)
		k.known[login], k.known[login+"_token"] = k.person(login, s.args[1:]...)
	case "code":
		k.known["code"] = k.code(arg(0), k.known["code"])
	case "links":
		k.known["approve"], k.known["skip"] = k.links(arg(0), k.known["approve"])
	case "unsubscribe":
		k.known["unsubscribe"] = k.unsubscribe(arg(0))
	case "confirm":
		k.known["confirm"] = k.confirm(arg(0))
	case "operator":
		k.known["operator"] = k.Operator()
	case "blocker":
		k.Block(arg(0), arg(1), s.files)
	case "issue":
		k.known[arg(2)] = k.issue(arg(0), arg(1))
	case "digest":
		k.known[arg(1)] = k.digest(arg(0))
	case "fail":
		k.fail(arg(0), arg(1))
	default:
		t.Fatalf("%s: there is no $ %s", k.at(s), s.verb)
	}
}

// exchange is a step with its values filled in.
type exchange struct {
	method, target, body, bearer string
	header                       []string
	row                          op.Op
	isRow                        bool
	frame                        string // JSON-RPC message of the call as a tool
	asTool                       bool
}

func (k *talk) exchange(s step) (x exchange, err error) {
	fill := func(text string) string {
		out, bad := k.known.fill(text)
		if bad != nil && err == nil {
			err = bad
		}
		return out
	}
	x.method, x.target, _ = strings.Cut(fill(s.request.first), " ")
	x.bearer = k.Owner
	for _, h := range s.request.header {
		if h[0] == "Authorization" {
			if x.bearer = ""; h[1] == "none" {
				continue
			}
		}
		x.header = append(x.header, h[0], fill(h[1]))
	}
	x.body = fill(s.request.body)
	path, _, _ := strings.Cut(x.target, "?")
	x.row, x.isRow = k.find(x.method, path)
	if k.tools && x.isRow && x.row.IsTool() && !s.endless {
		x.frame, x.asTool = s.overMCP(x.row, x.target, x.body, x.header)
	}
	return x, err
}

func (k *talk) step(t *testing.T, s *step) {
	outer := k.T
	k.T = t
	defer func() { k.T = outer }() // what ends later is no part of the step
	x, err := k.exchange(*s)
	if err != nil {
		t.Fatalf("%s: %v", k.at(*s), err)
	}
	try := func() (a answer, err error) {
		switch {
		case s.endless:
			a = k.hear(x.target, x.bearer, x.header, func(a answer) bool { return s.like(a, maps.Clone(k.known)) == nil })
		case x.asTool:
			if a, err = k.call(x.row, x.frame, x.bearer, s.answer.first, x.header); err != nil {
				return a, err
			}
		default:
			a = k.send(x.method, x.target, x.bearer, x.body, k.keyed(x.row, x.header)...)
		}
		found := maps.Clone(k.known)
		if err = s.like(a, found); err == nil {
			k.known = found
		}
		return a, err
	}
	a, err := try()
	if err != nil && s.poll {
		k.Eventually(k.at(*s)+": the answer is as the step says", func() bool {
			a, err = try()
			return err == nil
		})
	}
	if err != nil && *update && !s.endless {
		err = k.revise(s, a)
	}
	if err != nil {
		t.Fatalf("%s: %s %s: %v\n%s%s\nIf this is what it should answer: go test ./internal/proof/transcript -run 'TestTranscripts/%s/%s$' -update",
			k.at(*s), x.method, x.target, err, x.frame, indented(a.body), k.noun(), k.name)
	}
	if !x.isRow {
		return
	}
	if err := k.judge.Exchange(x.row.ID, []byte(x.body), a.StatusCode, a.Header, a.body); err != nil {
		t.Errorf("%s: %s: %v", k.at(*s), x.row.ID, err)
	}
	if x.asTool {
		k.called(x.row, a)
		if err := theToolJudge.call(x.row, x.frame, a); err != nil {
			t.Errorf("%s: %s: %v", k.at(*s), x.row.ID, err)
		}
	}
	if err := k.note(k, x.row, x.body, a); err != nil {
		t.Errorf("%s: %v", k.at(*s), err)
	}
}

// like returns an error that tells how an answer differs from the step.
func (s step) like(a answer, known values) error {
	if want, err := strconv.Atoi(s.answer.first); err != nil || a.StatusCode != want {
		return fmt.Errorf("status %d, want %s", a.StatusCode, s.answer.first)
	}
	for _, h := range s.answer.header {
		if err := known.match(h[1], a.Header.Get(h[0])); err != nil {
			return fmt.Errorf("header %s: %w", h[0], err)
		}
	}
	if s.answer.body == "" {
		return nil
	}
	if !a.isJSON() {
		return known.match(s.answer.body, strings.TrimSpace(string(a.body)))
	}
	return known.matchJSON(s.answer.body, a.body)
}

func (a answer) isJSON() bool { return strings.HasSuffix(a.Header.Get("Content-Type"), "json") }
