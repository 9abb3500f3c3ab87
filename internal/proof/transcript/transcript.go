// Package transcript plays talks with a server that are written down
// (testdata/*.txtar of a domain): requests, and what their answers must be
// like. The test of this package plays those of all packages, so that only one test
// binary links the program for them. One is played with `go test
// ./internal/proof/transcript -run TestTranscripts/task/retry`, and `-update` writes
// what was answered into the file.
//
// A transcript is an archive, and each file of it one step, named for what it
// shows. All steps are made on one fresh server, in their order:
//
//	-- a task is filed --
//	POST /v1/tasks
//	{"repo": "acme/web", "title": "t", "problem": "p"}
//	=> 202
//	{"kind": "dispatched", "task_id": "<task>"}
//
// A request is its first line, header lines and a body. Unless it has an
// Authorization line it comes with the owner's token; "Authorization: none"
// sends none. After => come the status, header lines and a pattern of the body
// (pattern.go); <task> stands for what is found there first, and for the same
// from then on, in requests as well. <url>, <setup> and <owner> are known from
// the start. "=> 200 eventually" repeats the request until the answer is like
// that; "=> 200 first" reads a stream until what it has sent is.
//
// A step that begins with $ is done for the transcript:
//
//	$ push OWNER/NAME     pushes a new repository; lines "path: text" are its files
//	$ public OWNER/NAME   makes a repository one that is open to everybody at its host
//	$ box TOKEN           enrolls a box, a real one, and lets it run
//	$ blocker TASK KIND   declares a blocker and holds the task for it; lines "name: kind" are its fields
//	$ issue OWNER/NAME N ID puts in the issue N of a repository, of bob, as a code host would
//	                      tell of one; <ID> is its id
//	$ digest DATE ID      puts in a digest of a day on which nothing happened; <ID> is its id
//	$ fail TASK KIND      fails a task for good, as the loss of its pull request would
//	$ person LOGIN [ROLE] makes a user with an account of their own, and a role in acme;
//	                      <LOGIN> is the id, <LOGIN_token> what they may do there
//	$ operator            <operator> is a token of ada's with every operator scope
//	$ code EMAIL          <code> is the newest code mailed to an address, once there is a
//	                      newer one than the last that was asked for
//	$ links EMAIL         <approve> and <skip> are the tokens of the newest mail to an address
//	                      that asks about a merge, once there is a newer one, as with code
//	$ unsubscribe EMAIL   <unsubscribe> is the token of the link of the newest mail to an address
//	                      that has one
//	$ confirm EMAIL       <confirm> is the token of the link of the newest mail to an address
//	                      that asks whether notices shall come there
//	$ collector           <collector> is an address that takes whatever is sent to it
//	$ visit ADDRESS       <back> is the query that a page elsewhere sends us back with
//	$ provider            as the first step: one test person can sign in at <provider>
//	                      and with GitHub
//	$ github              as the first step: northwind has installed the server's App at a
//	                      GitHub, and the milestones of its repository roadmap, of which
//	                      there is one, Boxes, are the goals of the platform
//	$ codehost            as the first step: the server is connected to a GitHub, where
//	                      acme/shop and acme/other are; ann's token <token> may push to
//	                      shop, <reader> may read it
//	$ fresh               as the first step: the server has not been set up
//	$ inside              as the first step: customers may name addresses of this machine
//	$ machine             as the first step: the server has a key for SSH and may dial this
//	                      machine, where at <port> an SSH server lets nobody in
//
// Every exchange is held against the OpenAPI document as well, every change
// against the audit record, and the record against the kinds of events that are
// declared. Each transcript is played over REST with both
// databases, and once more with its capabilities called as tools over MCP,
// which must come to the same. A capability must succeed in a transcript of its
// own package.
package transcript

import (
	"cmp"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/rig"
)

var update = flag.Bool("update", false, "write the answers into the transcripts, where they are not as expected")

// exchangesEnv names a file to which every exchange is appended, one JSON object per
// line, for other tools that check them (scripts/conformance).
const exchangesEnv = "YARDMASTER_EXCHANGES"

// Main runs the tests of a package that plays transcripts, see rig.Main.
func Main(m *testing.M) { rig.Main(m) }

// way is a way in which every transcript is played.
type way struct {
	name   string
	engine db.Engine
	tools  bool // over MCP
}

// waysOf are those of the transcripts of a package, by its import path.
func waysOf(pkg string) (ways []way) {
	for _, e := range dbtest.EnginesOf(pkg) {
		ways = append(ways, way{e.String(), e, false})
	}
	return append(ways, way{"mcp", db.SQLite, true})
}

// RunAll plays the transcripts of all packages of the module at root, each package as
// a subtest that is named for its folder.
func RunAll(t *testing.T, root string) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(root, "internal", "*", "*", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if rel, _ := filepath.Rel(root, dir); others[filepath.ToSlash(rel)] != "" {
			continue
		}
		all, err := readAll(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			continue
		}
		pkg, err := filepath.Rel(root, filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i].place = filepath.Join(pkg, "testdata", filepath.Base(all[i].path))
		}
		t.Run(filepath.Base(pkg), func(t *testing.T) {
			t.Parallel()
			run(t, "yardmaster/"+filepath.ToSlash(pkg), all)
		})
	}
}

// others are folders with archives in that format that are not transcripts.
var others = map[string]string{
	"internal/box/scrub/testdata":  "output of agents, for the scrubber",
	"internal/proof/gate/testdata": "packages that fail in every way",
}

// run plays the transcripts of a package, each as the subtests sqlite, postgres and
// mcp. Then it compares the capabilities of the package with what was played.
func run(t *testing.T, pkg string, all []transcript) {
	t.Helper()
	kept, ways := newRecord(t), waysOf(pkg)
	played := make(chan struct{}, len(all)*len(ways)) // what -run has left
	t.Cleanup(func() {                                // after the last of them
		if len(played) == cap(played) && !t.Failed() {
			kept.judge(t, pkg)
		}
	})
	for _, tr := range all {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			for _, w := range ways {
				if *update && w != ways[0] {
					continue
				}
				t.Run(w.name, func(t *testing.T) {
					t.Parallel()
					played <- struct{}{}
					tr.perform(t, w, kept)
				})
			}
		})
	}
}

type transcript struct {
	name  string
	path  string
	place string // the path as it is seen from the folder of the module
	steps []step
	tools bool // played over MCP
}

type step struct {
	name    string
	line    int    // of its heading
	text    string // as it stands in the file
	verb    string // of $ steps
	args    []string
	files   map[string]string
	request message
	answer  message // first is the status
	given   bool    // the step has an answer
	poll    bool
	endless bool
}

// message is a first line, header lines and a body.
type message struct {
	first  string
	header [][2]string
	body   string
}

// readAll reads the transcripts of a folder.
func readAll(dir string) (out []transcript, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		tr, err := read(path)
		if err != nil {
			return nil, err
		}
		out = append(out, tr)
	}
	return out, nil
}

// read parses one file. Its errors name the file and the line.
func read(path string) (transcript, error) {
	tr := transcript{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), path: path}
	text, err := os.ReadFile(path)
	if err != nil {
		return tr, err
	}
	archive := txtar.Parse(text)
	line := 1 + strings.Count(string(archive.Comment), "\n")
	for _, f := range archive.Files {
		s, err := parseStep(f.Name, string(f.Data))
		s.line = line
		if err != nil {
			return tr, fmt.Errorf("%s: %w", tr.at(s), err)
		}
		tr.steps = append(tr.steps, s)
		line += 1 + strings.Count(string(f.Data), "\n")
	}
	if len(tr.steps) == 0 {
		return tr, fmt.Errorf("%s has no steps", path)
	}
	return tr, nil
}

// noun is the folder of the package whose transcript this is.
func (tr transcript) noun() string { return filepath.Base(filepath.Dir(filepath.Dir(tr.path))) }

// at returns the place of a step in the form that editors and terminals understand.
func (tr transcript) at(s step) string {
	return fmt.Sprintf("%s:%d", cmp.Or(tr.place, tr.path), s.line)
}

const arrow = "\n=>"

func parseStep(name, text string) (s step, err error) {
	s.name, s.text = name, text
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
	request, answer, ok := strings.Cut(text, arrow)
	s.request = parseMessage(request)
	answer = strings.TrimSpace(answer)
	if s.given = answer != ""; !s.given && !*update {
		return s, fmt.Errorf("%q has no answer after a line that begins with =>; go test -update writes one", name)
	}
	if !ok && strings.Contains(text, "=>") {
		return s, fmt.Errorf("%q: => begins a line", name)
	}
	s.answer = parseMessage(answer)
	s.answer.first, s.poll = strings.CutSuffix(s.answer.first, " eventually")
	s.answer.first, s.endless = strings.CutSuffix(s.answer.first, " first")
	return s, nil
}

// parseMessage reads lines of the form "Name: value" as headers, up to the first
// other line.
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
