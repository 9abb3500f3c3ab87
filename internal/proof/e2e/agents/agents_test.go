//go:build agents

// Package agents_test has real coding agents, installed from npm in the versions
// that package-lock.json pins, do a whole task in a monorepo with submodules and files of
// Git LFS: a server and a box run as processes, the agent works in the box's sandbox, and the pull request is checked, approved and
// merged. Only the model is scripted. The tests need npm and hundreds of megabytes,
// so they have a build tag of their own; `make e2e-agents` runs them.
package agents_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/child"
	"yardmaster/internal/client"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/proof/odd"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/program"
)

const (
	account    = "acme"
	setupToken = "e2e-agents"
)

func TestAgentsMerge(t *testing.T) {
	bin := build(t)
	c := serve(t, bin)
	join(t, bin, c)
	for agent, pkg := range packages {
		t.Run(agent, func(t *testing.T) { merges(t, c, agent, versions(t)[pkg]) })
	}
}

// On a box with an egress list, all requests of an agent must go through the box's
// proxy. Some agents send model calls through it as well, although they are told not
// to.
func TestAgentsMergeThroughAProxy(t *testing.T) {
	bin := build(t)
	c := serve(t, bin)
	join(t, bin, c, "--egress", "registry.example")
	for _, agent := range []string{"qwen", "gemini"} {
		t.Run(agent, func(t *testing.T) { merges(t, c, agent, versions(t)[packages[agent]]) })
	}
}

// Codex without the adapter that drives it, on a running box, with a model server of
// one's own and no model named. The missing adapter is reported, installed on
// command, and then detected.
func TestCodexAsPeopleHaveIt(t *testing.T) {
	bin := build(t)
	c := serve(t, bin)
	has := filepath.Join(folder(t), "bin")
	if err := os.Mkdir(has, 0o755); err != nil {
		t.Fatal(err)
	}
	modules, _, _ := strings.Cut(os.Getenv("YARDMASTER_AGENT_PATH"), ":") // where the script has installed them
	for _, name := range []string{"codex", "node"} {
		if err := os.Symlink(filepath.Join(modules, name), filepath.Join(has, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("YARDMASTER_AGENT_PATH", has)
	data := enroll(t, bin, c)
	command := "yardmaster box agents install codex"
	lacks := func() string {
		for _, a := range offers(t, c) {
			if a.Name == "codex" && a.Missing != nil {
				return *a.Missing
			}
		}
		return ""
	}
	if said := lacks(); !strings.Contains(said, command) {
		t.Fatalf("of codex without its adapter the box says %q", said)
	}

	model := httptest.NewServer(model(t))
	defer model.Close()
	var key struct {
		Model     string
		Templates []string
	}
	if err := c.Call(t.Context(), http.MethodPut, "/v1/templates/codex", map[string]any{"agent": "codex"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(t.Context(), http.MethodPost, "/v1/billing/keys",
		map[string]string{"provider": "compatible", "base_url": model.URL + "/v1"}, &key); err != nil {
		t.Fatal(err)
	}
	if key.Model != "scripted-1" || !slices.Equal(key.Templates, []string{"codex", "default"}) {
		t.Fatalf("the endpoint was asked, and the key is for %+v", key)
	}

	installed := make(chan error, 1)
	var held, installing bool
	works(t, c, "codex", versions(t)[packages["codex"]], func(task client.Task) {
		for _, h := range task.Holds {
			held = held || h.Reason == "agent_not_installed" && strings.Contains(h.ClearsWhen, command)
		}
		if !held || installing {
			return
		}
		installing = true
		go func() {
			out, err := exec.Command(bin, "box", "agents", "install", "codex", "--data", data).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			installed <- err
		}()
	})
	if !held {
		t.Fatal("the task did not wait for its agent")
	}
	if err := <-installed; err != nil {
		t.Error(err)
	}
	if said := lacks(); said != "" {
		t.Errorf("codex is there, and the box says %q", said)
	}
}

// model is the scripted model as a server of its own.
func model(t *testing.T) http.Handler {
	text, err := os.ReadFile("testdata/scenario.yml")
	if err != nil {
		t.Fatal(err)
	}
	scenarios, err := scripted.ParseScenarios(text)
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(scenarios)
}

// packages are the agents, and the package that package.json pins for each.
var packages = map[string]string{
	"claude":   "@agentclientprotocol/claude-agent-acp",
	"codex":    "@agentclientprotocol/codex-acp",
	"gemini":   "@google/gemini-cli",
	"opencode": "opencode-linux-x64",
	"qwen":     "@qwen-code/qwen-code",
}

// merges has an agent do a task with the scripted model.
func merges(t *testing.T, c *client.Client, agent, version string) {
	if err := c.Call(t.Context(), http.MethodPut, "/v1/templates/"+agent,
		map[string]any{"agent": agent, "model": "scripted-1", "provider": "scripted", "timeout": 180}, nil); err != nil {
		t.Fatal(err)
	}
	works(t, c, agent, version, func(client.Task) {})
}

// works files a task for one agent against a repository of its own, and fails unless
// the task is merged and that agent alone has worked on it.
func works(t *testing.T, c *client.Client, agent, version string, seen func(client.Task)) {
	ctx, fail := context.WithCancelCause(patience.Context(t))
	defer fail(nil)
	call := func(method, path string, in, out any) {
		t.Helper()
		if err := c.Call(ctx, method, path, in, out); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.AddRepo(ctx, repository(t, c), account, agent); err != nil {
		t.Fatal(err)
	}
	var filed struct {
		TaskID string `json:"task_id"`
	}
	call(http.MethodPost, "/v1/tasks", map[string]any{
		"repo": account + "/" + agent, "template": agent, "title": "Count words",
		"problem": "The test of count.sh fails: it counts lines. Make it count words; do not change the test.",
	}, &filed)

	var started struct{ Agent, Version, Isolation string }
	var tools, tokens int
	show := client.Print(t.Output(), 0)
	printState, printEvent, printPull := show.State, show.Event, show.Pull
	show.State = func(task client.Task) {
		printState(task)
		seen(task)
		if task.Failure != nil {
			fail(fmt.Errorf("the first attempt failed: %s", *task.Failure))
		}
	}
	show.Event = func(task client.Task, e client.Event) {
		printEvent(task, e)
		if task.Kind != "work" {
			return
		}
		var d struct {
			Update       string `json:"sessionUpdate"`
			OutputTokens int    `json:"output_tokens"`
		}
		if err := json.Unmarshal(e.Data, &d); len(e.Data) > 0 && err != nil {
			t.Errorf("event %s: %v", e.Kind, err)
		}
		switch {
		case e.Kind == "started":
			if err := json.Unmarshal(e.Data, &started); err != nil {
				t.Error(err)
			}
		case d.Update == "tool_call":
			tools++
		case e.Kind == "usage":
			tokens = d.OutputTokens
		}
	}
	show.Pull = func(p client.Pull) {
		printPull(p)
		if p.PendingAction != nil && p.PendingAction.State == "pending" {
			if _, err := c.Approve(ctx, p.ID); err != nil {
				t.Error(err)
			}
		}
	}
	task, err := c.Watch(ctx, filed.TaskID, show)
	if err != nil {
		t.Fatal(err, context.Cause(ctx))
	}
	if task.Status != "merged" || task.Attempt != 1 {
		t.Fatalf("the task ended as %s at attempt %d", task.Status, task.Attempt)
	}
	if started.Agent != agent || started.Version != version {
		t.Errorf("the run was done by %s %s, want %s %s", started.Agent, started.Version, agent, version)
	}
	if tools < 4 || tokens == 0 {
		t.Errorf("%d tool calls and %d tokens were seen, want at least 4 and some", tools, tokens)
	}

	clone := filepath.Join(t.TempDir(), "merged")
	if _, err := client.Git(ctx, ".", c.URL, c.Token, "clone", "--quiet", fmt.Sprintf("%s/git/%s/%s.git", c.URL, account, agent),
		clone); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(ctx, "sh", filepath.Join(clone, "test.sh")).CombinedOutput(); err != nil {
		t.Errorf("the test fails on what was merged: %s", out)
	}
	if text, err := os.ReadFile(filepath.Join(clone, "CHANGES.md")); string(text) != "count.sh counts words.\n" {
		t.Errorf("the note is %q (%v)", text, err)
	}
	if out, err := exec.CommandContext(ctx, "git", "-C", clone, "diff", "--name-only", "HEAD~1",
		"HEAD").Output(); string(out) != "CHANGES.md\ncount.sh\n" {
		t.Errorf("the merge changed %q (%v)", out, err)
	}
}

// versions reads the pinned versions from the lock file.
func versions(t *testing.T) map[string]string {
	b, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version string }
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for path, p := range lock.Packages {
		out[strings.TrimPrefix(path, "node_modules/")] = p.Version
	}
	return out
}

// folder is a folder for data outside of the temporary folder, where codex refuses to
// keep its helpers, and of a home, which others may not enter.
func folder(t *testing.T) string {
	dir, err := os.MkdirTemp("/var/tmp", "yardmaster-e2e-")
	if err == nil {
		err = os.Chmod(dir, 0o711) // without bubblewrap, the agent of a root box passes through as nobody
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func build(t *testing.T) string {
	bin, err := program.Build(t.Context(), folder(t))
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// serve starts the server, and answers a client of the account's owner.
func serve(t *testing.T, bin string) *client.Client {
	cmd := exec.Command(bin, "serve", "--data", filepath.Join(folder(t), "server"), "--listen", "127.0.0.1:0",
		"--setup-token", setupToken, "--log-level", "warn", "--scenario", filepath.Join("testdata", "scenario.yml"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	line, err := bufio.NewReader(out).ReadString('\n')
	_, address, found := strings.Cut(line, " serves ")
	if err != nil || !found {
		t.Fatalf("the server said %q (%v)", line, err)
	}
	address, _, _ = strings.Cut(address, ",")
	c, err := client.Setup(t.Context(), address, setupToken,
		client.Owner{Login: "ada", Name: "Ada", Email: "ada@example.com", Password: "correct horse battery", Account: account})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// join enrolls a box, and fails the test if an agent is missing. The agents work with
// the scripted model.
func join(t *testing.T, bin string, c *client.Client, flags ...string) {
	if err := c.Call(t.Context(), http.MethodPost, "/v1/billing/keys", map[string]string{"provider": "scripted", "label": "e2e"},
		nil); err != nil {
		t.Fatal(err)
	}
	enroll(t, bin, c, flags...)
	got, pinned := offers(t, c), versions(t)
	for agent, pkg := range packages {
		if !slices.ContainsFunc(got, func(a offer) bool { return a.Name == agent && a.Version == pinned[pkg] }) {
			t.Errorf("the box does not offer %s %s", agent, pinned[pkg])
		}
	}
}

type offer struct {
	Name, Version string
	Missing       *string
}

type box struct {
	Presence     struct{ Status string }
	Capabilities []offer
	Isolation    []string
}

// offers are the agents of the only box.
func offers(t *testing.T, c *client.Client) []offer {
	var p struct{ Data []box }
	if err := c.Call(t.Context(), http.MethodGet, "/v1/runners", nil, &p); err != nil {
		t.Fatal(err)
	}
	return p.Data[0].Capabilities
}

// enroll starts a box, waits until it is online, and answers its folder.
func enroll(t *testing.T, bin string, c *client.Client, flags ...string) (data string) {
	var minted struct{ Token string }
	if err := c.Call(t.Context(), http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": "e2e"}, &minted); err != nil {
		t.Fatal(err)
	}
	data = filepath.Join(folder(t), "box")
	cmd := exec.Command(bin, append([]string{"box", "join", "--url", c.URL, "--data", data, "--name", "e2e"}, flags...)...)
	cmd.Env = append(os.Environ(), "YARDMASTER_ENROLL_TOKEN="+minted.Token)
	start(t, cmd)
	var p struct{ Data []box }
	patience.Until(t, "the box is online", func() bool {
		if err := c.Call(t.Context(), http.MethodGet, "/v1/runners", nil, &p); err != nil {
			t.Fatal(err)
		}
		return len(p.Data) == 1 && p.Data[0].Presence.Status == "online" && len(p.Data[0].Capabilities) > 0
	})
	t.Logf("the box offers %v, isolation %v", p.Data[0].Capabilities, p.Data[0].Isolation)
	return data
}

// start runs a process until the test is over; its output is the test's.
func start(t *testing.T, cmd *exec.Cmd) {
	if cmd.Stdout == nil {
		cmd.Stdout = t.Output()
	}
	cmd.Stderr = t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	ended := make(chan error, 1)
	if err := child.Start(cmd, func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := patience.Receive(t, "the end of "+cmd.Args[1], ended); err != nil {
			t.Errorf("%s: %v", cmd.Args[1], err)
		}
	})
}

// repository makes the monorepo with testdata/project in it, and puts its submodule on the
// server. here.sh fails where a submodule or the contents of Git LFS are not there.
func repository(t *testing.T, c *client.Client) string {
	k := odd.Monorepo()
	for _, other := range k.Beside {
		dir, err := other.Make(t.Context(), t.TempDir())
		if err == nil {
			err = c.AddRepo(t.Context(), dir, account, other.Name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, err := k.Make(t.Context(), t.TempDir())
	if err == nil {
		err = os.CopyFS(dir, os.DirFS("testdata/project"))
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "here.sh"), []byte(k.Holds+"\n"), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"add", "--", ".svc", "count.sh", "test.sh", "here.sh"}, // all would take the folders of submodules away
		{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message",
			"Count"},
	} {
		if _, err := client.Git(t.Context(), dir, "", "", args...); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
