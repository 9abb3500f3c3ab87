package github_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description"
	"yardmaster/internal/proof/patience"
)

// everything is what an App may have in the tests.
func everything() map[string]string {
	return map[string]string{
		"contents": "write", "pull_requests": "write", "issues": "write", "checks": "write", "statuses": "read", "actions": "write",
		"merge_queues": "write", "administration": "write",
	}
}

var allEvents = []string{
	"push", "create", "delete", "pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread",
	"issues", "issue_comment", "milestone", "check_run", "check_suite", "status", "workflow_run", "workflow_job", "merge_group",
	"repository", "label", "repository_ruleset",
}

// world is a peer with an App that is installed at a repository.
type world struct {
	*github.Server
	t        *testing.T
	app      *github.App
	org      *github.Account
	ann, bob *github.Account
	repo     *github.Repo
	inst     *github.Installation
	inbox    *inbox
}

// inbox is the receiver of deliveries.
type inbox struct {
	*httptest.Server
	mu     sync.Mutex
	got    []letter
	status int
}

type letter struct {
	event, action, guid string
	good                bool
	target              string
	body                map[string]any
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	l := letter{event: r.Header.Get("X-GitHub-Event"), guid: r.Header.Get("X-GitHub-Delivery")}
	l.target = r.Header.Get("X-GitHub-Hook-Installation-Target-ID")
	_ = json.Unmarshal(text, &l.body)
	l.action, _ = l.body["action"].(string)
	l.good = r.Header.Get("X-Hub-Signature-256") == github.Signature("hush", text)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, l)
	w.WriteHeader(b.status)
}

// take waits for all deliveries and returns and forgets them.
func (w *world) take() []letter {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience.Of(w.t))
	defer cancel()
	if err := w.Settle(ctx); err != nil {
		w.t.Fatal(err)
	}
	w.inbox.mu.Lock()
	defer w.inbox.mu.Unlock()
	out := w.inbox.got
	w.inbox.got = nil
	return out
}

// told returns the names of all deliveries since the last call: "pull_request opened".
func (w *world) told() string {
	w.t.Helper()
	var names []string
	for _, l := range w.take() {
		names = append(names, strings.TrimSpace(l.event+" "+l.action))
	}
	return strings.Join(names, ", ")
}

func (w *world) answerHooks(status int) {
	w.inbox.mu.Lock()
	defer w.inbox.mu.Unlock()
	w.inbox.status = status
}

// newWorld makes a world with the repository acme/shop and its people ann, who owns
// it, and bob, who may write.
func newWorld(t *testing.T, o github.Options) *world {
	t.Helper()
	w := &world{t: t, inbox: &inbox{status: http.StatusOK}}
	w.inbox.Server = httptest.NewServer(w.inbox)
	t.Cleanup(w.inbox.Close)
	w.Server = description.Serve(t, o)
	w.org, w.ann, w.bob = w.Org("acme"), w.Person("ann"), w.Person("bob")
	w.ann.Join(w.org, "admin", false)
	w.repo = w.Repo("acme/shop", github.NewRepo{Private: true, Files: map[string]string{
		"README.md": "# Shop\n", "cart.go": lines(1, 30), "docs/a b.md": "text\n",
	}})
	w.repo.Allow(w.bob, "write")
	w.app = w.NewApp(github.NewApp{
		Name: "Yard Master", Permissions: everything(), Events: allEvents, HookURL: w.inbox.URL, Secret: "hush",
	})
	w.inst = w.app.Install(w.org)
	return w
}

func lines(from, to int) string {
	var out strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintf(&out, "line %d\n", n)
	}
	return out.String()
}

// object is a JSON object.
type object = map[string]any

// answer is what the API said.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	text   []byte
}

func (a answer) object() object {
	a.t.Helper()
	var out object
	if err := json.Unmarshal(a.text, &out); err != nil {
		a.t.Fatalf("%v in %s", err, a.text)
	}
	return out
}

func (a answer) list() (out []object) {
	a.t.Helper()
	if err := json.Unmarshal(a.text, &out); err != nil {
		a.t.Fatalf("%v in %s", err, a.text)
	}
	return out
}

// at follows a path of members: "head.sha".
func at(o any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		m, _ := o.(object)
		o = m[name]
	}
	return o
}

func (a answer) at(path string) any { a.t.Helper(); return at(a.object(), path) }

func (a answer) id() int64 {
	a.t.Helper()
	n, ok := a.at("id").(float64)
	if !ok {
		a.t.Fatalf("there is no id in %s", a.text)
	}
	return int64(n)
}

// plainClient follows nothing, as the adapter must not.
var plainClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// ask makes a request with a credential: "Bearer x", or none.
func (w *world) ask(credential, method, path string, body any, header ...string) answer {
	w.t.Helper()
	a, err := w.try(credential, method, path, body, header...)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) try(credential, method, path string, body any, header ...string) (answer, error) {
	w.t.Helper()
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	to := w.API + path
	if strings.HasPrefix(path, "http") {
		to = path
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, to, in)
	if err != nil {
		w.t.Fatal(err)
	}
	if credential != "" {
		r.Header.Set("Authorization", "Bearer "+credential)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := plainClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return answer{w.t, got.StatusCode, got.Header, text}, err
}

// do asks with the installation's token and expects a status.
func (w *world) do(status int, method, path string, body any) answer {
	w.t.Helper()
	return w.as(w.inst.Token(), status, method, path, body)
}

// as asks with a credential and expects a status.
func (w *world) as(credential string, status int, method, path string, body any) answer {
	w.t.Helper()
	a := w.ask(credential, method, path, body)
	if a.status != status {
		w.t.Fatalf("%s %s => %d %s, want %d", method, path, a.status, a.text, status)
	}
	return a
}

// graph carries out GraphQL and returns data and the types of errors.
func (w *world) graph(credential, text string, variables object) (object, string) {
	w.t.Helper()
	a := w.as(credential, 200, "POST", w.GraphQL, object{"query": text, "variables": variables})
	var kinds []string
	errs, _ := a.at("errors").([]any)
	for _, e := range errs {
		kinds = append(kinds, fmt.Sprint(at(e, "type"), ": ", at(e, "message")))
	}
	data, _ := a.at("data").(object)
	return data, strings.Join(kinds, "; ")
}

// jwt is a JWT of an App, issued and ending by offsets from the peer's time.
func (w *world) jwt(a *github.App, issued, ends time.Duration) string {
	w.t.Helper()
	return signed(w.t, a, object{"iss": fmt.Sprint(a.ID), "iat": w.Now().Add(issued).Unix(), "exp": w.Now().Add(ends).Unix()})
}

func signed(t *testing.T, a *github.App, claims object) string {
	t.Helper()
	block, _ := pem.Decode([]byte(a.PEM()))
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(object{"alg": "RS256", "typ": "JWT"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// byApp asks as the App itself.
func (w *world) byApp(status int, method, path string, body any) answer {
	w.t.Helper()
	return w.as(w.jwt(w.app, -time.Minute, 9*time.Minute), status, method, path, body)
}

// narrowed mints a token with some permissions.
func (w *world) narrowed(permissions map[string]string) string {
	w.t.Helper()
	body := object{"permissions": permissions}
	return w.byApp(201, "POST", fmt.Sprintf("/app/installations/%d/access_tokens", w.inst.ID), body).at("token").(string)
}

// git runs git in a folder and returns what it says.
func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=ann", "GIT_COMMITTER_EMAIL=ann@example.com",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// withToken puts a token into the address of a repository.
func withToken(url, token string) string {
	return strings.Replace(url, "http://", "http://x-access-token:"+token+"@", 1)
}
