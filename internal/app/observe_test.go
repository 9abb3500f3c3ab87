package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/client"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

// journal keeps the records of requests.
type journal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all.Write(p)
}

// requests are the records, by request id.
func (j *journal) requests(t *testing.T) map[string][]map[string]any {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	out := map[string][]map[string]any{}
	for line := range strings.Lines(j.all.String()) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r["msg"] == "request" {
			name, _ := r["request_id"].(string)
			out[name] = append(out[name], r)
		}
	}
	return out
}

// watched runs a control plane with metrics and a log in JSON.
func watched(t *testing.T, flags ...string) (*yard, *journal) {
	t.Helper()
	j := &journal{}
	y := enter(bootWith(t, slog.New(slog.NewJSONHandler(j, nil)), db.SQLite, append(flags, "--metrics-listen", "127.0.0.1:0")...))
	y.push("acme/web", map[string]string{"README": "hello\n"})
	y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
	return y, j
}

// TestRecords holds that a request of each kind leaves exactly one record, which
// tells what it was, and that no record tells a secret.
func TestRecords(t *testing.T) {
	t.Parallel()
	y, j := watched(t)
	var made struct {
		ID string `json:"task_id"`
	}
	decode(t, y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`).want(202), &made)
	y.block(made.ID, "missing_credential", map[string]string{"TOKEN": "env_secret"})
	var blockers struct {
		Data []struct {
			FixURL string `json:"fix_url"`
		}
	}
	decode(t, y.send("GET", "/v1/blockers", y.owner, "").want(200), &blockers)
	link := strings.TrimPrefix(blockers.Data[0].FixURL, y.URL()+"/blocker-fix/")
	stray, invitation := id.Secret(id.PAT), id.Secret(id.Invite)
	call := `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ` +
		`{"name": "task.run_status", "arguments": {"id": "` + id.New() + `"}}}`
	unknown := id.Random()
	anywhere := map[string]any{"account": y.acct, "actor": "user:" + y.user}
	wants := map[string]map[string]any{}
	for name, c := range map[string]struct {
		method, path, bearer, body string
		status                     int
		want, also                 map[string]any
	}{
		"capability": {"GET", "/v1/tasks?per_page=5", y.owner, "", 200,
			map[string]any{"path": "/v1/tasks", "route": "/v1/tasks", "capability": "task.list", "surface": "rest"}, anywhere},
		"refused": {"GET", "/v1/tasks/" + unknown, y.owner, "", 404,
			map[string]any{"route": "/v1/tasks/{id}", "capability": "task.run_status", "surface": "rest", "slug": "not-found",
				"path": "/v1/tasks/" + unknown, "cause": "not-found: There is no such task."}, anywhere},
		"tool": {"POST", mcp.Path, y.owner, call, 200,
			map[string]any{"path": mcp.Path, "route": mcp.Path, "capability": "task.run_status", "surface": "mcp", "slug": "not-found",
				"cause": "not-found: There is no such task."}, anywhere},
		"list of tools": {"POST", mcp.Path, y.owner, `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`, 200,
			map[string]any{"path": mcp.Path, "route": mcp.Path, "capability": "mcp.rpc", "surface": "mcp"}, anywhere},
		"gateway": {"POST", "/gateway/v1/messages", stray, `{}`, 401,
			map[string]any{"path": "/gateway/v1/messages", "route": "/gateway/", "surface": "gateway", "slug": "unauthenticated",
				"cause": "unauthenticated: The token belongs to no live attempt."}, nil},
		"unmatched": {"GET", "/v1/nothing/" + stray + "?x=" + stray, y.owner, "", 404,
			map[string]any{"path": "/v1/nothing/[redacted]", "surface": "rest", "slug": "not-found", "actor": "anonymous",
				"cause": "not-found: There is nothing at this path."}, nil},
		"past a secret": {"GET", "/SETUP/" + y.setup + "/again", "", "", 404,
			map[string]any{"path": "/setup/[redacted]", "surface": "rest", "slug": "not-found", "actor": "anonymous",
				"cause": "not-found: There is nothing at this path."}, nil},
		"a secret for an id": {"GET", "/v1/tokens/" + stray, y.owner, "", 405,
			map[string]any{"path": "/v1/tokens/[redacted]", "route": "/v1/tokens/{id}", "surface": "rest", "slug": "method-not-allowed",
				"actor": "anonymous", "cause": "method-not-allowed: This path takes DELETE, PATCH."}, nil},
		"page": {"GET", "/blocker-fix/" + link, "", "", 200,
			map[string]any{"path": "/blocker-fix/[redacted]", "route": "/blocker-fix/{jwt}", "capability": "blocker.fix_link_form",
				"surface": "rest", "actor": "anonymous"}, nil},
		"wrong method": {"PUT", "/invite/" + invitation, "", "", 405,
			map[string]any{"path": "/invite/[redacted]", "route": "/invite/{token}", "surface": "rest", "slug": "method-not-allowed",
				"actor": "anonymous", "cause": "method-not-allowed: This path takes GET, HEAD, POST."}, nil},
	} {
		a := y.send(c.method, c.path, c.bearer, c.body, "X-Request-Id", name, "Accept-Encoding", "identity").want(c.status)
		c.want["method"], c.want["status"], c.want["bytes"] = c.method, float64(c.status), float64(len(a.body))
		maps.Copy(c.want, c.also)
		wants[name] = c.want
	}
	// A clone asks three times: without its password, for the refs, and for the pack.
	if _, err := client.Git(t.Context(), t.TempDir(), "", "", "-c", "http.extraHeader=X-Request-Id: clone", "-c", "protocol.version=0",
		"clone", "--quiet", strings.Replace(y.URL(), "://", "://x:"+y.owner+"@", 1)+"/git/acme/web.git", "c"); err != nil {
		t.Fatal(err)
	}
	y.stop() // every record is written by then
	for name, want := range wants {
		t.Run(name, func(t *testing.T) { j.hasOne(t, name, want) })
	}
	clone := j.requests(t)["clone"]
	for i, want := range []map[string]any{
		{"route": "/git/{owner}/{name}/info/refs", "status": 401.0, "slug": "unauthenticated"},
		{"route": "/git/{owner}/{name}/info/refs", "status": 200.0, "account": y.acct, "actor": "user:" + y.user},
		{"route": "/git/{owner}/{name}/git-upload-pack", "status": 200.0, "account": y.acct, "actor": "user:" + y.user},
	} {
		if len(clone) != 3 {
			t.Fatalf("a clone leaves %v", clone)
		}
		got := map[string]any{}
		for _, k := range []string{"route", "status", "slug", "account", "actor"} {
			if v := clone[i][k]; v != nil {
				got[k] = v
			}
		}
		if !maps.Equal(got, want) || clone[i]["surface"] != "git" || clone[i]["address"] != "127.0.0.1" {
			t.Errorf("record %d of a clone is %v, want %v", i, clone[i], want)
		}
	}
	for _, secret := range []string{link, stray, invitation, y.setup, y.owner} {
		if strings.Contains(j.all.String(), secret) {
			t.Errorf("the log tells %s", secret)
		}
	}
}

// hasOne holds that there is one record of a request, and what it has.
func (j *journal) hasOne(t *testing.T, name string, want map[string]any) {
	t.Helper()
	got := j.requests(t)[name]
	if len(got) != 1 {
		t.Fatalf("%d records: %v", len(got), got)
	}
	r := got[0]
	if took, _ := r["took"].(float64); took <= 0 || r["address"] != "127.0.0.1" || r["level"] != "INFO" {
		t.Errorf("the record is %v", r)
	}
	for _, k := range []string{"time", "level", "msg", "took", "address", "request_id"} {
		delete(r, k)
	}
	if !maps.Equal(r, want) {
		t.Errorf("the record has\n%v\nwant\n%v", r, want)
	}
}

// TestTraces holds that a request becomes a span where a collector is named, and
// that a server that stops sends what it has not sent.
func TestTraces(t *testing.T) {
	t.Parallel()
	spans := make(chan string, 1000)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		sent := &coltrace.ExportTraceServiceRequest{}
		if err = errors.Join(err, proto.Unmarshal(body, sent)); err != nil {
			t.Error(err)
		}
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans <- span.Name + " " + span.String()
				}
			}
		}
	}))
	defer collector.Close()
	y := start(t, db.SQLite, "--otlp-endpoint", collector.URL)
	y.send("GET", "/v1/tasks", y.owner, "").want(200)
	y.send("GET", "/invite/"+id.Secret(id.Invite), "", "").want(404)
	y.stop()
	close(spans)
	var names []string
	for s := range spans {
		name, _, _ := strings.Cut(s, " ")
		names = append(names, name)
		if strings.Contains(s, id.Invite) || strings.Contains(s, y.setup) {
			t.Errorf("a span tells a secret: %s", s)
		}
	}
	for _, want := range []string{"setup.run", "task.list", "invitation.page"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no span of %s among %q", want, names)
		}
	}
}

// TestSecretParameters holds that every parameter of a path is known to be a
// secret or to be none.
func TestSecretParameters(t *testing.T) {
	t.Parallel()
	open := []string{"id", "owner", "repo", "name", "slug", "scope", "key", "org", "rest", "guid", "path", "account_id",
		"channel", "version", "wid"}
	for _, o := range Ops() {
		for _, m := range regexp.MustCompile(`\{([^}.$]+)`).FindAllStringSubmatch(o.Path, -1) {
			if p := m[1]; !slices.Contains(open, p) && !strings.HasSuffix(p, "Id") && !slices.Contains(secretParameters, p) {
				t.Errorf("%s: is the parameter %s a secret? Say so in secretParameters, or here", o.ID, p)
			}
		}
	}
}

// metricsPage reads /metrics.
func (y *yard) metricsPage() string {
	y.t.Helper()
	resp, err := http.Get("http://" + y.watching.listener.Addr().String() + "/metrics")
	if err != nil {
		y.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		y.t.Fatal(resp.StatusCode, err)
	}
	return string(text)
}

// readMetrics reads /metrics: the type and the labels of each metric, and the
// values of one label.
func (y *yard) readMetrics(value string) (types map[string]string, labels map[string][]string, values []string) {
	y.t.Helper()
	types, labels = map[string]string{}, map[string][]string{}
	family := ""
	for line := range strings.Lines(y.metricsPage()) {
		if f := strings.Fields(line); len(f) == 4 && f[1] == "TYPE" {
			family = f[2]
			types[family] = f[3]
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, m := range regexp.MustCompile(`[{,](\w+)="([^"]*)"`).FindAllStringSubmatch(line, -1) {
			if m[1] != "le" && !slices.Contains(labels[family], m[1]) {
				labels[family] = append(labels[family], m[1])
			}
			if m[1] == value && !slices.Contains(values, m[2]) {
				values = append(values, m[2])
			}
		}
	}
	return types, labels, values
}

// TestMetrics holds that the page for operators tells of every metric and loop,
// and of no other, that agents' work shows, and that the public address tells
// nothing of it.
func TestMetrics(t *testing.T) {
	t.Parallel()
	y, j := watched(t, "--lease", rig.ShortLease) // a third of it passes before leases are looked at
	var enrolled struct{ Token string }
	decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, "{}").want(201), &enrolled)
	y.box(enrolled.Token)
	var made struct {
		ID string `json:"task_id"`
	}
	decode(t, y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`).want(202), &made)
	patience.Until(y.t, "the task is done", func() bool { return y.task(made.ID).Status == "completed" })
	y.send("GET", "/metrics", y.owner, "").problem(404, "not-found")

	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(yardmaster_\\w+)` \\| (\\w+) \\|([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		told[m[1]] = []string{m[2]}
		for _, l := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[3], -1) {
			told[m[1]] = append(told[m[1]], l[1])
		}
	}
	types, labels, loops := y.readMetrics("loop")
	for name, kind := range types {
		if !strings.HasPrefix(name, "yardmaster_") {
			continue
		}
		want := told[name]
		slices.Sort(labels[name])
		if len(want) == 0 || want[0] != kind || !slices.Equal(slices.Sorted(slices.Values(want[1:])), labels[name]) {
			t.Errorf("%s is a %s by %q; the page tells %q", name, kind, labels[name], want)
		}
		delete(told, name)
	}
	if len(told) > 0 {
		t.Errorf("the page tells of %v, which there are not", told)
	}
	for _, loop := range loops {
		if !strings.Contains(string(page), "\n| `"+loop+"` |") {
			t.Errorf("the page does not tell of the loop %s", loop)
		}
	}
	for _, loop := range []string{"clock.keep", "run.leases", "box.sweep", "box.beats", "pulls.sweep", "ci.sweep",
		"due.sweep", "mails.sweep", "budget.sweep",
		"repo.reconcile", "repos.sweep", "signin.refresh", "storage.watch", "idempotency.purge"} {
		patience.Until(y.t, "the loop "+loop+" is counted", func() bool {
			_, _, loops = y.readMetrics("loop")
			return slices.Contains(loops, loop)
		})
	}
	y.stop()
	calls := 0
	for _, r := range slices.Concat(slices.Collect(maps.Values(j.requests(t)))...) {
		if r["surface"] == "gateway" && r["status"] == 200.0 {
			calls++
			if actor, _ := r["actor"].(string); r["account"] != y.acct || !strings.HasPrefix(actor, "session:") {
				t.Errorf("a call of the gateway: %v", r)
			}
		}
	}
	if calls == 0 {
		t.Error("no record of a call of the gateway")
	}
}
