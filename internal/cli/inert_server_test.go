package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"yardmaster/internal/box"
	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/protocol"
	"yardmaster/internal/remote/remotetest"
)

// strangers are what a stranger may write into a field, the worst first. A field that refuses one
// is given the next; each has the word owned.
var strangers = []string{
	nasty,
	"a\u202eb\u200b\u2066owned\u2069 <b>x</b><script>alert(1)</script> %s{{.}} $(touch x) `x`",
	"<b>owned</b>%s{{.}}",
	"<i>owned",
	"owned",
}

// field is a capability that takes text of people, and its inputs: T is the worst text that all of them
// take, N is nasty.
type field struct {
	noun   string // whose list shows it
	op     string
	inputs string // JSON
}

// fields are those of all nouns that a person can make through the API of an empty server.
// What comes from agents, code hosts and the server is in TestTextOfWorkIsInertOnATerminal.
var fields = []field{
	{"task", "task.create", `{"repo": "acme/web", "title": "T", "problem": "N", "labels": {"T": "T"}}`},
	{"ask", "ask.file", `{"repo": "acme/web", "title": "T", "body": "N", "labels": {"T": "T"}}`},
	{"schedule", "schedule.create", `{"title": "T", "body": "N", "cron": "0 6 * * 1"}`},
	{"token", "token.mint", `{"name": "T"}`},
	{"key", "billing.key_add", `{"provider": "scripted", "label": "T"}`},
	{"template", "template.set", `{"name": "careful", "model": "T", "provider": "anthropic"}`},
	{"webhook", "webhook.create", `{"name": "hook", "url": "http://127.0.0.1:1/T"}`},
	{"source", "integration.source_connect", `{"name": "errors", "kind": "linear", "repo": "acme/web", "label": "T"}`},
	{"invitation", "member.invite", `{"email": "T@example.com"}`},
	{"secret", "secret.set", `{"name": "TOKEN", "value": "T", "environment": "T"}`},
	{"repo-secret", "project_secret.set", `{"owner": "acme", "repo": "web", "name": "TOKEN", "value": "T", "environment": "T"}`},
	{"repo", "project.create", `{"name": "shop", "description": "T", "stack": "T"}`},
	{"plan", "plan.file", `{"repo": "acme/web", "slug": "try", "dry_run": true, "documents": {"overview.md": "# T\n\nT\n",
		"01-first.md": "# T\n\nT\n"}}`},
}

// fill sends the worst text that a field takes, and answers it with the object that was made.
func fill(t *testing.T, y *rig.Yard, f field) (text string, made map[string]any) {
	t.Helper()
	o := capability.All()[f.op]
	if o == nil {
		t.Fatalf("there is no %s", f.op)
	}
	refused := ""
	for _, text := range strangers {
		quoted, err := object.Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		// The words that are a text, or have one in them.
		filled := regexp.MustCompile(`\bT\b`).ReplaceAllLiteralString(f.inputs, strings.Trim(string(quoted), `"`))
		if quoted, err = object.Encode(nasty); err != nil {
			t.Fatal(err)
		}
		filled = regexp.MustCompile(`"N"`).ReplaceAllLiteralString(filled, string(quoted))
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(filled), &members); err != nil {
			t.Fatalf("%s: %v in %s", f.op, err, filled)
		}
		var in []capability.Given
		for name, value := range members {
			g := capability.Given{Name: name, Text: string(value), JSON: true}
			if o.Input()[name] != "body" {
				g = capability.Given{Name: name, Text: strings.Trim(string(value), `"`)}
			}
			in = append(in, g)
		}
		path, body, err := capability.Assemble(o, in)
		if err != nil {
			t.Fatal(f.op, err)
		}
		b, err := object.Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		resp, answer := y.Send(o.Method, path, y.Owner, string(b))
		if resp.StatusCode < 300 {
			_ = json.Unmarshal(answer, &made)
			return text, made
		}
		if resp.StatusCode != http.StatusBadRequest && resp.StatusCode != http.StatusUnprocessableEntity {
			t.Fatalf("%s: %d %s", f.op, resp.StatusCode, answer)
		}
		refused = string(answer)
	}
	t.Errorf("%s takes no text: %s", f.op, refused)
	return "", nil
}

// Text of strangers in each field that a server takes stays inert on a real terminal, in the
// list and the view of each noun and in what looks over all of them.
func TestTextIsInertOnATerminal(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "ssh-key")
	if err := os.WriteFile(key, remotetest.NewFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	y := yard(t, "--allow-networks", "127.0.0.0/8", "--ssh-key-file", key) // of the webhook, where nobody answers
	if err := y.Push("acme/web", map[string]string{"a": "a\n", ".svc/policy.yml": "version: 1\n"}); err != nil {
		t.Fatal(err)
	}
	shows := map[string]bool{"box": true, "blocker": true} // nouns whose list and view have the text
	for _, f := range fields {
		text, made := fill(t, y, f)
		t.Logf("%s takes %q", f.op, text)
		shows[f.noun] = true
		if taskID, ok := made["task_id"].(string); ok && f.noun == "task" {
			y.OnTask(taskID, func(tx *db.Tx, row *task.Row) error { // as a run declares it
				b := protocol.BlockerDeclared{ID: id.New(), Kind: "question", Question: nasty}
				if err := y.Blockers.Declare(tx, row.RepoID, row.ID, id.New(), b); err != nil {
					return err
				}
				return y.Tasks.Hold(tx, row, task.Blocked, b.Question)
			})
		}
	}
	_, enrollment := fill(t, y, field{"box", "box.add", `{"name": "T"}`})
	token, _ := enrollment["token"].(string)
	if _, err := box.Enroll(t.Context(), y.URL, token, box.Info{Name: nasty, Version: nasty, Slots: 1}); err != nil {
		t.Fatal(err)
	}
	for _, silent := range []string{"repo", "secret", "repo-secret", "webhook"} { // they show no text of people
		delete(shows, silent)
	}
	viewAlone := map[string]bool{"source": true}       // the list shows no text
	someRowsAlone := map[string]bool{"template": true} // the server brings rows of its own
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner)
	run := func(args ...string) string { return inertly(t, p, args) }
	for _, c := range commands() {
		n := nounOfList(c)
		if n == nil {
			continue
		}
		args := strings.Fields(c.Words)
		if n.PerRepo {
			args = append(args, "--repo", "acme/web")
		}
		if shown := run(args...); shows[n.Name] && !viewAlone[n.Name] && !strings.Contains(shown, "owned") {
			t.Errorf("%q shows nothing of the text:\n%s", args, shown)
		}
	}
	run("secret", "list", "--repo", "acme/web")
	run("status")
	for _, c := range commands() {
		verb, view := strings.CutSuffix(c.Words, " view")
		if !view || c.Of == nil || c.Of.(*noun.Noun).PerRepo {
			continue
		}
		n := noun.Called(verb)
		for _, row := range rowsAt(t, y, n) {
			shown := run(verb, "view", n.ID(row))
			if shows[n.Name] && !someRowsAlone[n.Name] && !strings.Contains(shown, "owned") {
				t.Errorf("%s view shows nothing of the text:\n%s", verb, shown)
			}
		}
	}
	looked := 0
	for _, c := range commands() { // that only look, besides lists and views
		a, _ := c.Does.(*act.Act)
		lists := c.Rows && !strings.HasSuffix(c.Words, " list") && !strings.HasSuffix(c.Words, " view")
		if !lists && (a == nil || capability.All()[a.Op].Method != http.MethodGet || a.PerRepo) {
			continue
		}
		words := strings.Fields(c.Words)
		switch {
		case len(c.Wants()) == 0:
			looked++
			if slices.Contains(flagsOf(c.Words), "repo") {
				words = append(words, "--repo", "acme/web")
			}
			run(words...)
		case c.Of != nil && len(c.Wants()) == 1 && !c.Of.(*noun.Noun).PerRepo:
			for _, row := range rowsAt(t, y, c.Of.(*noun.Noun)) {
				looked++
				run(append(words, c.Of.(*noun.Noun).ID(row))...)
			}
		}
	}
	if looked < 8 {
		t.Errorf("only %d commands that look were run", looked)
	}
	for _, row := range rowsAt(t, y, noun.Called("ask")) {
		run("ask", "get", noun.Called("ask").ID(row))
	}
}

// inertly is what a command shows on a terminal, without colours. The test fails if anything else
// of it controls the terminal, or if a text begins a line.
func inertly(t *testing.T, p *person, args []string, steps ...step) string {
	t.Helper()
	shown, code := p.terminal(args, steps...)
	if code != 0 {
		t.Errorf("%q: exit code %d\n%s", args, code, shown)
	}
	bare := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(strings.ReplaceAll(shown, "\r\n", "\n"), "")
	if strings.ContainsFunc(bare, func(r rune) bool {
		return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u200b'
	}) {
		t.Errorf("%q shows %q", args, shown)
	}
	if strings.Contains(bare, "\nEVIL") {
		t.Errorf("%q lets a text begin a line:\n%s", args, shown)
	}
	return bare
}

// nounOfList is the noun whose list a command is; nil for any other command.
func nounOfList(c tree.Command) *noun.Noun {
	name, lists := strings.CutSuffix(c.Words, " list")
	for _, n := range noun.All() {
		if lists && n.Name == name {
			return n
		}
	}
	return nil
}

// rowsAt are the rows of a noun's list at a server.
func rowsAt(t *testing.T, y *rig.Yard, n *noun.Noun) (rows []map[string]any) {
	t.Helper()
	path := capability.All()[n.List].Path
	if n.Query != "" {
		path += "?" + n.Query
	}
	resp, body := y.Send(http.MethodGet, path, y.Owner, "")
	var page struct {
		Data []map[string]any `json:"data"`
	}
	if err := json.Unmarshal(body, &page); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s %v", n.List, resp.StatusCode, body, err)
	}
	return page.Data
}
