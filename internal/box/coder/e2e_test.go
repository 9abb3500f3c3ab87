package coder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/box/coder"
	"yardmaster/internal/box/driver"
	"yardmaster/internal/proof/patience"
)

// TestMain makes this test binary the agent when it is started as "agent", the
// way the real binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if err := coder.Main(context.Background(), os.Stdin, os.Stdout, os.Environ()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work is one agent process, prepared and started as a box would.
type work struct {
	dir     string
	launch  driver.Launch
	in      io.WriteCloser
	out     io.Reader
	updates []map[string]any
	asked   int
	seen    chan string // prose and tool kinds as they come
}

func begin(t *testing.T, model string, options map[string]string) *work {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &work{dir: t.TempDir(), seen: make(chan string, 1000)}
	home := t.TempDir()
	w.launch, err = driver.Prepare(driver.Job{
		Agent: driver.Builtin, Model: "scripted-1", Options: options, ModelURL: model, ModelToken: "secret-token",
		Task: w.dir, Home: home, HostHome: home, Self: self,
	}, driver.Found{Name: driver.Builtin})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(w.launch.Argv[0], w.launch.Argv[1:]...)
	cmd.Dir, cmd.Env = w.launch.Dir, []string{"PATH=" + os.Getenv("PATH")}
	for k, v := range w.launch.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stderr = os.Stderr
	if w.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if w.out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		w.in.Close()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if err := patience.Receive(t, "the end of the agent, whose input has ended", ended); err != nil {
			t.Errorf("the agent's end: %v", err)
		}
	})
	return w
}

func (w *work) drive(ctx context.Context, prompt string, msgs <-chan driver.Message) (driver.Outcome, error) {
	return driver.Drive(ctx, w.launch, w.in, w.out, prompt, msgs, driver.Hooks{
		Permission: func(json.RawMessage) { w.asked++ },
		Update: func(raw json.RawMessage) {
			var u map[string]any
			if json.Unmarshal(raw, &u) == nil {
				w.updates = append(w.updates, u)
				w.seen <- string(raw)
			}
		},
	})
}

func (w *work) await(t *testing.T, text string) {
	t.Helper()
	over := patience.Over(t)
	for {
		select {
		case u := <-w.seen:
			if strings.Contains(u, text) {
				return
			}
		case <-over:
			t.Errorf("no update with %q", text)
			return
		}
	}
}

func TestAWholeTask(t *testing.T) {
	for _, api := range []string{"chat", "messages", "responses"} {
		t.Run(api, func(t *testing.T) {
			s := script(t,
				step{Text: "I look first.", Tool: "search", Args: m{"pattern": "h[ae]llo"}},
				step{Tool: "read", Args: m{"path": "greeting.txt", "from": 2, "to": 2}, Status: 429, Refuse: 2},
				step{Tool: "edit", Args: m{"path": "greeting.txt", "old_string": "hallo", "new_string": "hello"}},
				step{Tool: "edit", Args: m{"path": "new/file.txt", "old_string": "", "new_string": "fresh\n"}},
				step{Tool: "shell", Args: m{"command": "cat greeting.txt; echo \"token=$YARDMASTER_MODEL_TOKEN\"; exit 3"}, Status: 529,
					Refuse: 1},
				step{Tool: "nonsense", Args: m{}},
				step{Text: "All done, and checked."},
			)
			w := begin(t, s.URL, map[string]string{"api": api, "permission": "ask"})
			if err := os.WriteFile(filepath.Join(w.dir, "greeting.txt"), []byte("one\nhallo\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := w.drive(t.Context(), "Greet in English.", nil)
			if err != nil {
				t.Fatal(err)
			}
			if out.Stop != "end_turn" || out.FinalText != "All done, and checked." || out.Turns != 1 || out.SessionID == "" {
				t.Errorf("outcome %+v", out)
			}
			for path, want := range map[string]string{"greeting.txt": "one\nhello\n", "new/file.txt": "fresh\n"} {
				if b, err := os.ReadFile(filepath.Join(w.dir, path)); err != nil || string(b) != want {
					t.Errorf("%s is %q, %v", path, b, err)
				}
			}
			if w.asked != 3 {
				t.Errorf("asked %d times, want 3: two edits and a command", w.asked)
			}
			wantResults := []string{"greeting.txt:2: hallo\n", "     2\thallo\n", "replaced 1 in greeting.txt", "created new/file.txt",
				"one\nhello\ntoken=\n\n[exit status 3]", `there is no tool "nonsense"`}
			if got := strings.Join(s.results, "|"); got != strings.Join(wantResults, "|") {
				t.Errorf("the model was told %q\nwant %q", s.results, wantResults)
			}
			var kinds, states []string
			diffs := 0
			for _, u := range w.updates {
				switch u["sessionUpdate"] {
				case "tool_call":
					kinds = append(kinds, fmt.Sprint(u["kind"]))
				case "tool_call_update":
					if u["status"] == "in_progress" {
						continue // what the command puts out meanwhile
					}
					states = append(states, fmt.Sprint(u["status"]))
					if c := list(u["content"]); len(c) == 1 && c[0].(map[string]any)["type"] == "diff" {
						diffs++
					}
				}
			}
			if got := strings.Join(kinds, " "); got != "search read edit edit execute other" {
				t.Errorf("kinds of tool calls: %s", got)
			}
			if got := strings.Join(states, " "); got != "completed completed completed completed failed failed" || diffs != 2 {
				t.Errorf("ends of tool calls: %s; %d diffs", got, diffs)
			}
		})
	}
}

// TestOutputArrivesWhileTheCommandRuns runs a command that continues only after the
// test has seen its output.
func TestOutputArrivesWhileTheCommandRuns(t *testing.T) {
	s := script(t, step{Tool: "shell", Args: m{"command": "printf 'gr\\303'; cat gate1; printf '\\274n\\n'; cat gate; echo after"}},
		step{Text: "Done."})
	w := begin(t, s.URL, nil)
	gates := []struct{ file, seen, say string }{{"gate1", `"data":"gr"`, ""}, {"gate", `"data":"ün\n`, "open\n"}}
	for _, g := range gates {
		if err := syscall.Mkfifo(filepath.Join(w.dir, g.file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for _, g := range gates {
			w.await(t, g.seen)
			if err := os.WriteFile(filepath.Join(w.dir, g.file), []byte(g.say), 0o600); err != nil {
				t.Error(err)
			}
		}
	}()
	out, err := w.drive(t.Context(), "Wait.", nil)
	if err != nil || out.FinalText != "Done." {
		t.Fatalf("%+v, %v", out, err)
	}
	var live strings.Builder
	over := false
	for _, u := range w.updates {
		if u["sessionUpdate"] != "tool_call_update" {
			continue
		}
		if u["status"] != "in_progress" {
			over = true
			continue
		}
		meta, _ := u["_meta"].(map[string]any)
		piece, _ := meta["terminal_output_delta"].(map[string]any)
		if over || piece["terminal_id"] != u["toolCallId"] {
			t.Errorf("a piece behind the end, or of another call: %v", u)
		}
		fmt.Fprint(&live, piece["data"])
	}
	if live.String() != "grün\nopen\nafter\n" {
		t.Errorf("while it ran: %q", live.String())
	}
}

func TestCancelDuringACommand(t *testing.T) {
	s := script(t, step{Tool: "shell", Args: m{"command": "echo $$ > pid; sleep 1000 & wait"}}, step{Text: "never"})
	w := begin(t, s.URL, nil)
	pid := filepath.Join(w.dir, "pid")
	if err := syscall.Mkfifo(pid, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	group := make(chan int, 1)
	go func() {
		defer cancel()
		b, _ := os.ReadFile(pid) // blocks until the command has written it
		var n int
		fmt.Sscan(string(b), &n)
		group <- n
	}()
	out, err := w.drive(ctx, "Wait.", nil)
	if err != nil || out.Stop != "cancelled" {
		t.Fatalf("%+v, %v", out, err)
	}
	g := <-group
	patience.Until(t, "the agent, which still runs, has ended the command's process group", func() bool { return !alive(g) })
}

// alive tells whether a process group has a member that is not a zombie.
func alive(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file) // the process may be gone
		_, after, _ := strings.Cut(string(text), ") ")
		var g, parent int
		var state string
		if fmt.Sscan(after, &state, &parent, &g); g == group && state != "Z" {
			return true
		}
	}
	return false
}

func TestAnInterruptingMessageEndsTheTurn(t *testing.T) {
	s := script(t, step{Text: "thinking about it ", Hang: true})
	w := begin(t, s.URL, nil)
	msgs := make(chan driver.Message)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		w.await(t, "thinking")
		msgs <- driver.Message{ID: "1", Text: "later"}
		msgs <- driver.Message{ID: "2", Text: "at once", Interrupt: true}
		w.await(t, "thinking")
		cancel()
	}()
	out, err := w.drive(ctx, "Think.", msgs)
	if err != nil || out.Turns != 2 || out.Stop != "cancelled" {
		t.Fatalf("%+v, %v", out, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := list(s.requests[len(s.requests)-1]["messages"])
	last := messages[len(messages)-1].(map[string]any)
	if last["content"] != "at once" {
		t.Errorf("the second turn's prompt is %v", last)
	}
}

func TestARefusedCredential(t *testing.T) {
	s := script(t, step{Text: "x"})
	w := begin(t, s.URL, nil)
	s.steps = []step{{Status: 401, Refuse: 1000}}
	_, err := w.drive(t.Context(), "Go.", nil)
	var e *driver.AgentError
	if !errors.As(err, &e) || e.Kind != driver.KindAuth || !strings.Contains(e.Message, "refused the credential") {
		t.Fatalf("%v", err)
	}
	if s.count() != 1 {
		t.Errorf("a refused credential was tried %d times", s.count())
	}
}

func TestATurnHasALimitOfRequests(t *testing.T) {
	s := script(t, step{Tool: "shell", Args: m{"command": "true"}})
	w := begin(t, s.URL, map[string]string{"max_requests": "3"})
	out, err := w.drive(t.Context(), "Loop.", nil)
	if err != nil || out.Stop != "max_turn_requests" || s.count() != 3 {
		t.Errorf("%+v, %v, %d requests", out, err, s.count())
	}
}

func TestAnOverflowingContextIsCutAndTriedAgain(t *testing.T) {
	long := step{Tool: "shell", Args: m{"command": "seq 3000"}}
	s := script(t, long, long, long, long, long, long,
		step{Text: "ok", Status: 400, Refuse: 1, Error: "maximum context length is 5 tokens"})
	w := begin(t, s.URL, nil)
	out, err := w.drive(t.Context(), "Fill it.", nil)
	if err != nil || out.FinalText != "ok" {
		t.Fatalf("%+v, %v", out, err)
	}
	if !strings.Contains(s.results[0], "bytes of old output dropped") || !strings.HasPrefix(s.results[5], "1\n2\n") {
		t.Errorf("the first result is %.60q, the last %.60q", s.results[0], s.results[5])
	}
}
