package driver

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func run(t *testing.T, ctx context.Context, seen func(string), argv ...string) (CommandOutcome, string, error) {
	t.Helper()
	var text strings.Builder
	out, err := RunCommand(ctx, exec.Command(argv[0], argv[1:]...), Hooks{Update: func(raw json.RawMessage) {
		var u struct {
			SessionUpdate string
			Content       struct{ Type, Text string }
		}
		if err := json.Unmarshal(raw, &u); err != nil || u.SessionUpdate != "agent_message_chunk" || u.Content.Type != "text" {
			t.Errorf("update %s: %v", raw, err)
		}
		text.WriteString(u.Content.Text)
		if seen != nil {
			seen(text.String())
		}
	}})
	return out, text.String(), err
}

func TestRunCommand(t *testing.T) {
	out, text, err := run(t, t.Context(), nil, "sh", "-c", "cat; echo out; echo err >&2; exit 7")
	if err != nil || out.ExitCode != 7 || out.Cancelled || out.Output != "out\nerr\n" || text != out.Output {
		t.Errorf("%+v, streamed %q, %v", out, text, err)
	}
}

func TestRunCommandKeepsTheEnd(t *testing.T) {
	out, text, err := run(t, t.Context(), nil, "sh", "-c", "yes äöü | head -c 40000; echo end")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(out.Output); n > keptOutput || n < keptOutput-4 || !strings.HasSuffix(out.Output, "end\n") || strings.ContainsRune(out.Output[:n-20], '�') {
		t.Errorf("kept %d bytes: …%q", n, out.Output[n-20:])
	}
	if !strings.HasPrefix(text, "äöü\näöü\n") || len(text) < 40000 {
		t.Errorf("streamed %d bytes", len(text))
	}
}

func TestRunCommandCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := time.Now()
	out, _, err := run(t, ctx, func(s string) {
		if strings.Contains(s, "ready") {
			cancel()
		}
	}, "sh", "-c", "sleep 1000 & echo ready; wait")
	if err != nil || !out.Cancelled || out.ExitCode != -1 {
		t.Errorf("%+v, %v", out, err)
	}
	if d := time.Since(started); d > killAfter {
		t.Errorf("ended after %s", d)
	}
}

func TestTerminateKillsWhatIgnoresIt(t *testing.T) {
	cmd := exec.Command("sh", "-c", "trap '' TERM; echo ready; sleep 1000; sleep 1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 16)); err != nil { // the trap is set
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := terminate(cmd.Process.Pid, 50*time.Millisecond, ended); err == nil || err.Error() != "signal: killed" {
		t.Errorf("ended with %v", err)
	}
}

func TestRunCommandThatDoesNotExist(t *testing.T) {
	if _, _, err := run(t, t.Context(), nil, "/does/not/exist"); err == nil {
		t.Error("no error")
	}
}

func TestRunesAreNotCut(t *testing.T) {
	var got []string
	o := &output{update: func(raw json.RawMessage) {
		var u struct{ Content struct{ Text string } }
		if json.Unmarshal(raw, &u) == nil {
			got = append(got, u.Content.Text)
		}
	}}
	for _, b := range []byte("a€😀\xff") {
		o.Write([]byte{b})
	}
	o.Write([]byte("\xe2\x82"))
	o.flush()
	if want := "a|€|😀|\ufffd|\ufffd\ufffd"; strings.Join(got, "|") != want {
		t.Errorf("chunks %q", got)
	}
}
