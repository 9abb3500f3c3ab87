package e2e

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"yardmaster/internal/proof/chaos"
)

// withModel gives the stack a scripted model. The template "default", of the built-in
// agent, plays the scenarios.
func withModel(t *testing.T, scenarios string) (flags []string) {
	t.Helper()
	f, err := os.CreateTemp(root, "scenario-*.yml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(scenarios); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return []string{"--scenario", f.Name()}
}

// hold is a reason why a task waits, in the form of the API.
type hold struct {
	Reason     string
	ClearsWhen string `json:"clears_when"`
	Clear      *struct {
		Capability string
		Args       map[string]string
	}
}

func (st *stack) holds(task string) []hold {
	st.t.Helper()
	var t struct{ Holds []hold }
	st.call(http.MethodGet, "/v1/tasks/"+task, nil, &t)
	return t.Holds
}

type blockerRow struct {
	ID       string
	Kind     string
	State    string
	Question string
	TaskID   string  `json:"task_id"`
	FixURL   *string `json:"fix_url"`
	Form     *struct {
		Fields []struct {
			Name, Kind  string
			Landed      bool
			Submittable bool
		}
	}
}

// blocker waits for the open blocker of a task.
func (st *stack) blocker(task string) blockerRow {
	st.t.Helper()
	var found blockerRow
	st.until("a blocker of "+task+" is open", func() bool {
		var p struct{ Data []blockerRow }
		st.call(http.MethodGet, "/v1/blockers", nil, &p)
		for _, b := range p.Data {
			if b.TaskID == task {
				found = b
			}
		}
		return found.ID != ""
	})
	return found
}

// browse acts as a browser without JavaScript: it opens a page, or sends its form. It
// answers the status and the page.
func browse(t *testing.T, link string, form url.Values) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if form != nil {
		req, err = http.NewRequestWithContext(t.Context(), http.MethodPost, link, strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(page)
}

// service is a host that demands a credential. Its certificate is from an authority
// of its own, which the boxes of st are told to trust.
func (st *stack) service(authority string, h http.HandlerFunc) *httptest.Server {
	st.t.Helper()
	server := httptest.NewTLSServer(h)
	st.t.Cleanup(server.Close)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(st.path(authority), cert, 0o644); err != nil {
		st.t.Fatal(err)
	}
	st.env = append(st.env, "SSL_CERT_FILE="+st.path(authority), "YARDMASTER_BOX_EGRESS=127.0.0.1")
	return server
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// An agent asks for a password, an address and a server; a person fills the form in,
// field by field; the waiting agent continues with them, and none of them can be read
// anywhere.
func TestMissingCredentialIsFilledInAndTheRunGoesOn(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatalf("curl is not to be had on this machine (%v): install it, the agent of this test needs it", err)
	}
	key, token := "deploy+"+rand.Text()+"/=", "tracker+"+rand.Text()+"/="
	st := newStack(t, append(withModel(t, `scenarios:
  - name: after
    match: A person has put these into the vault
    steps:
      - text: I look at what there is now, too loudly.
        shell: |
          eval "$(curl -fsS "$YARDMASTER_SECRETS_URL/-/env")"
          echo "$DEPLOY_KEY"; printf %s "$DEPLOY_KEY" | base64 -w0; printf %s "$DEPLOY_KEY" | od -An -tx1 | tr -d ' \n'; env
          printf %s "$DEPLOY_KEY" | sha256sum | cut -d' ' -f1 >key.sum
          echo "$HOOK_URL" >hook.sum; sha256sum <hook.sum | cut -d' ' -f1 >hook.sum2; mv hook.sum2 hook.sum
          curl -sS "$YARDMASTER_SECRETS_URL/$(cat tracker)/x?echo=1" >answer; cat answer
      - text: I deliver.
        shell: |
          rm tracker; `+deliver+`
      - text: Done.
  - name: before
    match: Deploy the widgets
    steps:
      - text: I ask.
        shell: |
          echo '{"kind":"missing_credential","question":"Where does it go, and how do I get in?","fields":[{"name":"DEPLOY_KEY","kind":"env_secret","description":"the key"},{"name":"HOOK_URL","kind":"service_url"},{"name":"tracker","kind":"mcp_server"}]}' >"$YARDMASTER_OUTBOX/blocker-key.json"
      - text: I wait.
`), "--allow-networks", "127.0.0.0/8")...)
	tracker := st.service("ca.pem", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("the service was shown %q", got)
		}
		fmt.Fprintf(w, "hello, you are %s\n", r.Header.Get("Authorization"))
	})
	host := strings.TrimPrefix(tracker.URL, "https://")
	st.call(http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	b := st.join("box")
	id := st.file("default", "Deploy the widgets")
	asked := st.blocker(id)
	r := st.tries(id)[0]
	if err := os.WriteFile(filepath.Join(b.checkout(r), "tracker"), []byte(host), 0o644); err != nil {
		t.Fatal(err)
	}
	st.until("the run is parked", func() bool { return st.tries(id)[0].State == "parked" })
	holds := st.holds(id)
	if len(holds) != 1 || holds[0].Reason != "blocked" || holds[0].Clear == nil || holds[0].Clear.Capability != "blocker.submit" ||
		holds[0].Clear.Args["blockerId"] != asked.ID {
		t.Errorf("the task that waits shows %+v", holds)
	}

	status, page := browse(t, *asked.FixURL, nil)
	if status != 200 || strings.Contains(page, "<script") || !strings.Contains(page, "DEPLOY_KEY") ||
		!strings.Contains(page, "Where does it go, and how do I get in?") {
		t.Errorf("%d %s", status, page)
	}
	hook := "https://hooks.example.com/" + rand.Text()
	for i, fill := range []url.Values{
		{"fields.DEPLOY_KEY": {key}, "fields.HOOK_URL": {""}, "fields.mcp:tracker.url": {""}, "fields.mcp:tracker.token": {""}},
		{"fields.mcp:tracker.url": {tracker.URL + "/mcp"}, "fields.mcp:tracker.transport": {"http"}, "fields.mcp:tracker.token": {token}},
		{"fields.HOOK_URL": {hook}},
	} {
		status, page := browse(t, *asked.FixURL, fill)
		if status != 200 || strings.Contains(page, key) || strings.Contains(page, token) || strings.Contains(page, hook) {
			t.Fatalf("filling in %d: %d %s", i, status, page)
		}
		if i == 1 && !strings.Contains(page, "token_ref: MCP_TRACKER_TOKEN") {
			t.Errorf("no stanza on %s", page)
		}
		if i == 0 {
			if status, page := browse(t, *asked.FixURL, url.Values{"fields.DEPLOY_KEY": {"another"}}); status != 409 {
				t.Errorf("written twice: %d %s", status, page)
			}
			if s := st.tries(id)[0].State; s != "parked" {
				t.Errorf("the run is %s though fields are left", s)
			}
		}
	}
	if status, _ := browse(t, *asked.FixURL, url.Values{"fields.HOOK_URL": {hook}}); status != 409 {
		t.Errorf("a closed form answers %d", status)
	}
	if status, _ := browse(t, *asked.FixURL, nil); status != 410 {
		t.Errorf("the link of a closed form answers %d", status)
	}

	st.merges(id)
	if got := st.outcomes(id); got != "succeeded" {
		t.Errorf("the tries: %s", got)
	}
	for file, want := range map[string]string{"key.sum": digest(key), "hook.sum": digest(hook + "\n")} {
		if got := st.git(st.bare(), "show", "main:"+file); got != want {
			t.Errorf("%s holds %q, want %q", file, got, want)
		}
	}
	if got := st.git(st.bare(), "show", "main:answer"); !strings.HasPrefix(got, "hello, you are ") || strings.Contains(got, token) {
		t.Errorf("the service answered %q", got)
	}
	st.reads(id, map[string]string{"the key": key, "the token": token, "the address": hook})
	st.verify()
	st.hides(map[string]string{"the key": key, "the token": token, "the address": hook})
}

// A command cannot be told anything: it ends, its task is held, and once everything
// that it asked for has arrived, a new try continues its work.
func TestHeldTaskGoesOnWithWhatItAskedFor(t *testing.T) {
	key := "deploy+" + rand.Text() + "/="
	st := newStack(t)
	st.script("asker", `if [ -e half ]; then
		rm half; grep -q 'A person answers: Blue, as ever.' "$YARDMASTER_PROMPT" || exit 3
		echo "$DEPLOY_KEY"; printf %s "$DEPLOY_KEY" | sha256sum | cut -d' ' -f1 >key.sum; `+deliver+`; exit; fi
		echo half >half; cd "$YARDMASTER_OUTBOX"
		echo '{"kind":"missing_credential","question":"How do I get in?","fields":[{"name":"DEPLOY_KEY","kind":"env_secret"}]}' >blocker-1.json
		echo '{"kind":"decision","question":"Which colour?"}' >blocker-2.json
		echo '{"kind":"missing_access","question":"Who lets me into the registry?","fields":[{"name":"X","kind":"env_secret"}]}' >blocker-3.json`)
	st.join("box")
	id := st.file("asker", "Deploy the widgets")
	if r := st.ends(id, 1); r.Outcome != "interrupted" || r.FailureKind != "blocked" {
		t.Errorf("the first try ended as %+v", r)
	}
	var open struct{ Data []blockerRow }
	st.call(http.MethodGet, "/v1/blockers", nil, &open)
	if len(open.Data) != 3 {
		t.Fatalf("open are %+v", open.Data)
	}
	of := func(kind string) blockerRow {
		t.Helper()
		i := slices.IndexFunc(open.Data, func(b blockerRow) bool { return b.Kind == kind })
		if i < 0 {
			t.Fatalf("there is no %s", kind)
		}
		return open.Data[i]
	}
	form, decision, access := of("missing_credential"), of("decision"), of("missing_access")
	clears := func(want ...string) {
		t.Helper()
		var got []string
		for _, h := range st.holds(id) {
			got = append(got, h.Reason+" "+h.Clear.Capability+" "+h.Clear.Args["blockerId"])
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("the task is held for %q, want %q", got, want)
		}
	}
	wantForm, wantDecision := "blocked blocker.submit "+form.ID, "blocked blocker.answer "+decision.ID
	clears(wantForm, wantDecision, "blocked blocker.answer "+access.ID)
	if form.FixURL == nil || decision.FixURL != nil || decision.Form != nil || access.FixURL != nil || access.Form != nil {
		t.Errorf("forms: %+v", open.Data)
	}
	var closed struct{ Kind, State string }
	st.call(http.MethodPost, "/v1/blockers/"+access.ID+"/withdraw", nil, &closed)
	clears(wantForm, wantDecision)
	// The link is the credential.
	anyone := *st.c
	anyone.Token = (*form.FixURL)[strings.LastIndexByte(*form.FixURL, '/')+1:]
	if err := anyone.Call(st.ctx, http.MethodPost, "/v1/blockers/"+form.ID+"/submit",
		map[string]any{"fields": map[string]string{"DEPLOY_KEY": key}}, &closed); err != nil || closed.Kind != "recorded" {
		t.Fatalf("%+v, %v", closed, err)
	}
	clears(wantDecision)
	if err := st.c.Call(st.ctx, http.MethodPost, "/v1/blockers/"+decision.ID+"/answer", map[string]string{"answer": "It is " + key},
		nil); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("an answer with the key in it: %v", err)
	}
	st.call(http.MethodPost, "/v1/blockers/"+decision.ID+"/answer", map[string]string{"answer": "Blue, as ever."}, &closed)
	if closed.Kind != "released" {
		t.Errorf("the answer did %+v", closed)
	}
	st.merges(id)
	if got := st.outcomes(id); got != "interrupted(blocked) succeeded" || st.tries(id)[1].ResumeSHA == "" {
		t.Errorf("the tries: %s", got)
	}
	if got := st.git(st.bare(), "show", "main:key.sum"); got != digest(key) {
		t.Errorf("key.sum holds %q", got)
	}
	st.reads(id, map[string]string{"the key": key})
	st.verify()
	st.hides(map[string]string{"the key": key})
}

// hides checks that the data of a stopped stack contains none of the secrets.
func (st *stack) hides(secrets map[string]string) {
	st.t.Helper()
	for name, secret := range secrets {
		for i, trace := range chaos.Traces(secret) {
			st.scan([][]byte{trace}, func(where string) { st.t.Errorf("%s is in %s, in spelling %d", name, where, i) })
		}
	}
}

// reads fetches everything that the API shows of a task, and checks that it contains
// none of the secrets.
func (st *stack) reads(task string, secrets map[string]string) {
	st.t.Helper()
	for _, path := range []string{
		"/v1/tasks/" + task, "/v1/tasks/" + task + "/events?per_page=1000", "/v1/tasks/" + task + "/report",
		"/v1/tasks/" + task + "/attempts", "/v1/blockers?open=false",
		"/v1/repos/" + owner + "/" + repoName + "/secrets", "/v1/secrets", "/v1/audit/events?per_page=200", "/v1/sessions",
	} {
		var out json.RawMessage
		st.call(http.MethodGet, path, nil, &out)
		for name, secret := range secrets {
			if strings.Contains(string(out), secret) {
				st.t.Errorf("%s is in the answer of %s", name, path)
			}
		}
	}
}

// The MCP servers of the policy file are tools of the agent. The box adds their token
// to requests: neither the agent nor any stored data has it.
func TestServersOfThePolicyFileAreTools(t *testing.T) {
	token := "tracker+" + rand.Text() + "/="
	st := newStack(t, append(withModel(t, `scenarios:
  - name: look-up
    match: Look up the ticket
    steps:
      - tool: {name: streamed__lookup, args: {ticket: T-1}}
      - tool: {name: evented__lookup, args: {ticket: T-2}}
      - text: I deliver.
        shell: |
          `+deliver+`
      - text: Done.
`), "--allow-networks", "127.0.0.0/8")...)
	var seen sync.Map
	tracker := sdk.NewServer(&sdk.Implementation{Name: "tracker", Version: "1"}, nil)
	sdk.AddTool(tracker, &sdk.Tool{Name: "lookup", Description: "Looks a ticket up."},
		func(_ context.Context, _ *sdk.CallToolRequest, in struct {
			Ticket string `json:"ticket"`
		}) (*sdk.CallToolResult, any, error) {
			seen.Store(in.Ticket, true)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "ticket " + in.Ticket + " says " + token}}}, nil, nil
		})
	choose := func(*http.Request) *sdk.Server { return tracker }
	mux := http.NewServeMux()
	mux.Handle("/mcp", sdk.NewStreamableHTTPHandler(choose, nil))
	mux.Handle("/sse", sdk.NewSSEHandler(choose, nil))
	host := st.service("ca.pem", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+token {
			t.Errorf("the server was shown %q", got)
		}
		mux.ServeHTTP(w, r)
	})
	st.call(http.MethodPut, "/v1/secrets/MCP_TRACKER_TOKEN", map[string]any{
		"value": token, "delivery": "broker", "hosts": []string{strings.TrimPrefix(host.URL, "https://")},
	}, nil)
	st.push("main", map[string]string{".svc/policy.yml": "version: 1\nreview: {mode: off}\nmerge: {mode: auto}\nmcp_servers:\n" +
		"  streamed: {url: " + host.URL + "/mcp, transport: http, token_ref: MCP_TRACKER_TOKEN}\n" +
		"  evented: {url: " + host.URL + "/sse, transport: sse, token_ref: MCP_TRACKER_TOKEN}\n" +
		"  absent: {url: 'https://mcp.invalid/', transport: http, token_ref: MCP_ABSENT_TOKEN}\n"})
	st.call(http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted"}, nil)
	st.join("box")
	id := st.file("default", "Look up the ticket")
	st.merges(id)
	if got := st.outcomes(id); got != "succeeded" {
		t.Errorf("the tries: %s", got)
	}
	for _, ticket := range []string{"T-1", "T-2"} {
		if _, ok := seen.Load(ticket); !ok {
			t.Errorf("nobody looked %s up", ticket)
		}
	}
	var told bool
	for _, e := range st.events(st.tries(id)[0]) {
		told = told || strings.Contains(string(e.Data), "ticket T-2 says ")
	}
	if !told {
		t.Error("the agent was not told what the server answered")
	}
	st.reads(id, map[string]string{"the token": token})
	st.verify()
	st.hides(map[string]string{"the token": token})
}
