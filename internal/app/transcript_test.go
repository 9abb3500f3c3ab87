package app

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/tools/txtar"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// A transcript (testdata/*.txtar of a domain or room) is a talk with a fresh
// server, in order. Each file of the archive is one step, named for what it
// shows:
//
//	-- a task is filed --
//	POST /v1/tasks
//	{"repo": "acme/web", "title": "t", "problem": "p"}
//	=> 202
//	{"kind": "dispatched", "task_id": "<task>"}
//
// A request is its first line, header lines and a body. Unless it has an
// Authorization line it comes with the owner's token; "Authorization: none"
// sends none. After => come the status, header lines and what the body must
// be like (see pattern_test.go); <task> stands for whatever is found there
// first, and for the same from then on, in requests as well. <url>, <setup>
// and <owner> are known from the start. "=> 200 eventually" repeats the
// request until the answer is like that; "=> 200 first" reads a stream until
// what it has sent is.
//
// A step that begins with $ is done for the transcript:
//
//	$ push OWNER/NAME     pushes a new repository; lines "path: text" are its files
//	$ box TOKEN           enrolls a box, a real one, and lets it run
//	$ blocker TASK KIND   declares a blocker and holds the task for it; lines "name: kind" are its fields
//	$ fail TASK KIND      fails a task for good, as the loss of its pull request would
//	$ person LOGIN [ROLE] makes a user with an account of their own, and a role in acme;
//	                      <LOGIN> is the id, <LOGIN_token> what they may do there
//	$ operator            <operator> is a token of ada's with every operator scope
//	$ code EMAIL          <code> is the newest code mailed to an address, once there is a
//	                      newer one than the last that was asked for
//	$ visit ADDRESS       <back> is the query that a page elsewhere sends us back with
//	$ provider            as the first step: people may sign in at <provider>, of whom one
//	                      comes there, and with GitHub
//	$ fresh               as the first step: the server has not been set up
//
// Every exchange is held against the OpenAPI document as well, every change
// against the audit record, and the record against the kinds of events that are
// declared. Each transcript is played over REST with both
// databases, and once more with its capabilities called as tools over MCP,
// which must come to the same.
func TestTranscripts(t *testing.T) {
	kept := record{rows: map[string][]int{}, tool: map[string]bool{}}
	if *exchanges != "" {
		f, err := os.Create(*exchanges)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		kept.file = f
	}
	all, played := transcripts(t), 0
	var asTools atomic.Int64
	t.Cleanup(func() { // after the last of them
		if played == len(all) {
			kept.judge(t, int(asTools.Load()) == len(all))
		}
	})
	for _, tr := range all {
		t.Run(tr.name, func(t *testing.T) {
			played++
			t.Parallel()
			for _, way := range []struct {
				name   string
				engine db.Engine
				tools  bool
			}{{"sqlite", db.SQLite, false}, {"postgres", db.Postgres, false}, {"mcp", db.SQLite, true}} {
				e := way.engine
				t.Run(way.name, func(t *testing.T) {
					t.Parallel()
					tr := tr
					if tr.tools = way.tools; tr.tools {
						asTools.Add(1)
					}
					switch tr.steps[0].verb {
					case "fresh":
						tr.play(t, boot(t, e), nil, &kept)
					case "provider":
						p := newProvider(t)
						p.is(map[string]any{"sub": "1", "id": 1, "login": "eva", "name": "Eva", "email": "eva@acme.example", "email_verified": true})
						p.set(func() { p.emails = []map[string]any{{"email": "ada@example.com", "verified": true, "primary": true}} })
						tr.play(t, start(t, e, "--allow-networks", "127.0.0.0/8", "--github-url", p.URL, "--github-client-id", providerClient, "--github-client-secret", providerSecret), p, &kept)
					default:
						tr.play(t, start(t, e), nil, &kept)
					}
				})
			}
		})
	}
}

type transcript struct {
	name  string
	steps []step
	tools bool // play it over MCP
}

type step struct {
	name    string
	verb    string // of $ steps
	args    []string
	files   map[string]string
	request message
	answer  message // first is the status
	poll    bool
	endless bool
}

// message is a first line, header lines and a body.
type message struct {
	first  string
	header [][2]string
	body   string
}

func transcripts(t *testing.T) (out []transcript) {
	t.Helper()
	domains, err := filepath.Glob("../domain/*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	others, err := filepath.Glob("../api/*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(domains, others...) {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tr := transcript{name: strings.TrimSuffix(filepath.Base(path), ".txtar")}
		for _, f := range archive.Files {
			s, err := parseStep(f.Name, string(f.Data))
			if err != nil {
				t.Fatalf("%s: %s: %v", path, f.Name, err)
			}
			tr.steps = append(tr.steps, s)
		}
		out = append(out, tr)
	}
	return out
}

func parseStep(name, text string) (s step, err error) {
	s.name = name
	text = strings.TrimSpace(text)
	if command, ok := strings.CutPrefix(text, "$ "); ok {
		first, rest, _ := strings.Cut(command, "\n")
		words := strings.Fields(first)
		s.verb, s.args, s.files = words[0], words[1:], map[string]string{}
		for line := range strings.Lines(rest) {
			path, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
			s.files[path] = text + "\n"
		}
		return s, nil
	}
	request, answer, ok := strings.Cut(text, "\n=> ")
	if !ok {
		return s, fmt.Errorf("there is no => line")
	}
	s.request, s.answer = parseMessage(request), parseMessage(answer)
	s.answer.first, s.poll = strings.CutSuffix(s.answer.first, " eventually")
	s.answer.first, s.endless = strings.CutSuffix(s.answer.first, " first")
	return s, nil
}

// parseMessage takes lines of the form "Name: value" as headers up to the
// first that is not.
func parseMessage(text string) (m message) {
	var rest string
	m.first, rest, _ = strings.Cut(text, "\n")
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		name, value, ok := strings.Cut(line, ": ")
		if !ok || name != http.CanonicalHeaderKey(name) || strings.ContainsAny(name, "{[\"<* ") {
			break
		}
		m.header = append(m.header, [2]string{name, value})
		rest = after
	}
	m.body = strings.TrimSpace(rest)
	return m
}

// router finds the row a request goes to.
func router() func(method, path string) (op.Op, bool) {
	mux := http.NewServeMux()
	rows := map[string]op.Op{}
	for _, o := range Ops() {
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
}

func (tr transcript) play(t *testing.T, y *yard, p *provider, kept *record) {
	y.watchAnswers()
	talk := talk{yard: *y, tools: tr.tools, record: kept, find: router(), judge: newJudge(t), known: values{"url": y.URL(), "setup": y.setup, "owner": y.owner}}
	if p != nil {
		talk.known["provider"] = p.URL
	}
	for _, s := range tr.steps {
		switch s.verb {
		case "fresh", "provider":
		case "visit":
			talk.known["back"] = y.visit(talk.known.fill(t, s.args[0]))
		case "push":
			y.push(s.args[0], s.files)
		case "box":
			y.box(talk.known.fill(t, s.args[0]))
		case "person":
			talk.meet(s.args)
		case "code":
			talk.known["code"] = y.code(s.args[0], talk.known["code"])
		case "operator":
			talk.known["operator"] = y.operator()
		case "blocker":
			y.block(talk.known.fill(t, s.args[0]), s.args[1], s.files)
		case "fail":
			y.fail(talk.known.fill(t, s.args[0]), s.args[1])
		case "":
			if !t.Run(s.name, func(t *testing.T) { talk.step(t, s) }) {
				return // what follows builds on it
			}
		default:
			t.Fatalf("there is no $ %s", s.verb)
		}
	}
	y.declared()
}

// talk is a transcript being played.
type talk struct {
	yard
	tools bool
	*record
	find  func(method, path string) (op.Op, bool)
	judge *judge
	known values
}

// meet makes a person whom the transcript speaks of.
func (k *talk) meet(args []string) {
	login := args[0]
	account := k.tenant(login)
	user := k.person(login, account, policy.Owner)
	if len(args) > 1 {
		k.in(k.acct, func(tx *db.Tx) error {
			_, err := addMember.Exec(tx, k.acct, user, args[1])
			return err
		})
		account = k.acct
	}
	k.known[login] = user
	k.known[login+"_token"] = k.mint(account, &user, policy.Owner.Ceiling(), nil)
}

func (k *talk) step(t *testing.T, s step) {
	k.t = t
	method, target, _ := strings.Cut(k.known.fill(t, s.request.first), " ")
	header := []string{}
	bearer := k.owner
	for _, h := range s.request.header {
		if h[0] == "Authorization" {
			if bearer = ""; h[1] == "none" {
				continue
			}
		}
		header = append(header, h[0], k.known.fill(t, h[1]))
	}
	body := k.known.fill(t, s.request.body)
	path, _, _ := strings.Cut(target, "?")
	o, isRow := k.find(method, path)
	frame, asTool := "", false
	if k.tools && isRow && o.IsTool() && !s.endless {
		frame, asTool = s.overMCP(o, target, body, header)
	}
	try := func() (a answer, err error) {
		switch {
		case s.endless:
			a = k.hear(target, bearer, header, func(a answer) bool { return s.like(a, maps.Clone(k.known)) == nil })
		case asTool:
			if a, err = k.call(o, frame, bearer, s.answer.first, header); err != nil {
				return a, err
			}
		default:
			a = k.send(method, target, bearer, body, k.keyed(o, header)...)
		}
		found := maps.Clone(k.known)
		if err = s.like(a, found); err == nil {
			k.known = found
		}
		return a, err
	}
	a, err := try()
	if err != nil && s.poll {
		k.eventually("the answer is as the step says", func() bool {
			a, err = try()
			return err == nil
		})
	}
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", method, target, err, frame, a.body)
	}
	if !isRow {
		return
	}
	if err := k.judge.exchange(o, []byte(body), a); err != nil {
		t.Errorf("%s: %v", o.ID, err)
	}
	if asTool {
		k.called(o, a)
		if err := theToolJudge.call(o, frame, a); err != nil {
			t.Errorf("%s: %v", o.ID, err)
		}
	}
	k.note(k, o, body, a)
}

// like tells what in an answer is not as the step says.
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
	if kind := a.Header.Get("Content-Type"); !strings.HasSuffix(kind, "json") {
		return known.match(s.answer.body, strings.TrimSpace(string(a.body)))
	}
	return known.matchJSON(s.answer.body, a.body)
}

// Every row occurs in a transcript that shows it succeed.
func TestEveryRowIsInATranscript(t *testing.T) {
	find := router()
	shown := map[string][]string{}
	for _, tr := range transcripts(t) {
		for _, s := range tr.steps {
			if s.verb != "" {
				continue
			}
			method, target, _ := strings.Cut(s.request.first, " ")
			target, _, _ = strings.Cut(strings.NewReplacer("<", "", ">", "").Replace(target), "?")
			if o, ok := find(method, target); ok {
				shown[o.ID] = append(shown[o.ID], s.answer.first)
			}
		}
	}
	for _, o := range Ops() {
		if o.Status >= 400 {
			continue // it never succeeds
		}
		if !slices.ContainsFunc(shown[o.ID], func(status string) bool { return strings.HasPrefix(status, "2") || status == strconv.Itoa(o.Status) }) {
			t.Errorf("%s succeeds in no transcript (there: %v)", o.ID, shown[o.ID])
		}
	}
}
