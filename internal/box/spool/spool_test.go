package spool_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/box/scrub"
	"yardmaster/internal/box/spool"
	_ "yardmaster/internal/proof/chance" // the seed
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("SPOOL_WRITER"); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

func open(t testing.TB, dir string, o spool.Options) *spool.Spool {
	t.Helper()
	s, err := spool.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func say(s *spool.Spool, text string) {
	raw, _ := json.Marshal(map[string]any{
		"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text},
	})
	s.Update(raw)
}

// all reads every event from the first that is asked for.
func all(t testing.TB, s *spool.Spool, from int64) []protocol.Event {
	t.Helper()
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	events, err := s.Read(from, 1<<20, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		if e.Seq != from+int64(i) {
			t.Fatalf("event %d has number %d", from+int64(i), e.Seq)
		}
	}
	return events
}

func said(t testing.TB, events []protocol.Event) string {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		if e.Kind != protocol.EventUpdate {
			continue
		}
		var u struct{ Content struct{ Text string } }
		if err := json.Unmarshal(e.Data, &u); err != nil {
			t.Fatal(err)
		}
		b.WriteString(u.Content.Text)
	}
	return b.String()
}

func TestTextIsCoalescedInOrderWithStateEvents(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{TextWindow: time.Hour})
	say(s, "a")
	say(s, "b")
	if err := s.Append(protocol.EventStarted, protocol.Started{Agent: "x"}); err != nil {
		t.Fatal(err)
	}
	say(s, "c")
	s.Update(json.RawMessage(`{"sessionUpdate":"tool_call","toolCallId":"1"}`))
	say(s, "d")
	if err := s.Append(protocol.EventFinished, protocol.Finished{State: protocol.Succeeded}); err != nil {
		t.Fatal(err)
	}
	events := all(t, s, 1)
	var got []string
	for _, e := range events {
		got = append(got, e.Kind)
	}
	want := "agent.update started agent.update agent.update agent.update run.finished"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if text := said(t, events); text != "abcd" {
		t.Errorf("the agent said %q", text)
	}
	if !s.Ended() {
		t.Error("the spool does not know that the attempt ended")
	}
	say(s, "too late")
	if err := s.Append(protocol.EventUsage, nil); !errors.Is(err, spool.ErrEnded) || s.Last() != int64(len(events)) {
		t.Errorf("after the end: %v, and %d events", err, s.Last())
	}
}

func TestTextIsWrittenWhenItsWindowIsOver(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{TextWindow: time.Millisecond})
	changed := s.Changed()
	say(s, "hello")
	patience.Ended(t, "a change of the spool", changed)
	if text := said(t, all(t, s, 1)); text != "hello" {
		t.Errorf("got %q", text)
	}
}

func TestTextIsCappedAndTheCutIsAnEvent(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{TextTotal: 10_000, TextEvent: 1000})
	for range 100 {
		say(s, strings.Repeat("x", 999)+"\n")
	}
	if err := s.Append(protocol.EventFinished, nil); err != nil {
		t.Fatal(err)
	}
	cuts := 0
	events := all(t, s, 1)
	for _, e := range events {
		if e.Kind == protocol.EventTruncated {
			cuts++
		}
	}
	if n := len(said(t, events)); n > 10_000 || n < 8000 || cuts != 1 {
		t.Errorf("%d bytes of text and %d cuts", n, cuts)
	}
}

func TestLargeUpdateIsShortenedAndStillReadable(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{})
	raw, _ := json.Marshal(map[string]any{
		"sessionUpdate": "tool_call_update", "toolCallId": "7",
		"content": []any{map[string]any{"text": strings.Repeat("ü", 1<<20)}},
	})
	s.Update(raw)
	events := all(t, s, 1)
	if len(events) != 2 || len(events[0].Data) > 64<<10 || events[1].Kind != protocol.EventTruncated {
		t.Fatalf("got %d events, the first of %d bytes", len(events), len(events[0].Data))
	}
	var u struct{ SessionUpdate, ToolCallID string }
	if err := json.Unmarshal(events[0].Data, &u); err != nil || u.SessionUpdate != "tool_call_update" || u.ToolCallID != "7" {
		t.Errorf("update %+v, error %v", u, err)
	}
}

func TestStateEventAlwaysFitsAMessage(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{})
	if err := s.Append(protocol.EventPermission, map[string]any{"title": "write", "content": strings.Repeat("\x00", 1<<20)}); err != nil {
		t.Fatal(err)
	}
	e := all(t, s, 1)[0]
	var v struct{ Title string }
	if err := json.Unmarshal(e.Data, &v); err != nil || v.Title != "write" || len(e.Data) > protocol.MaxMessage-1024 {
		t.Errorf("%d bytes, title %q, error %v", len(e.Data), v.Title, err)
	}
}

func TestSecretAcrossPiecesIsNeverWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{TextWindow: time.Nanosecond, Scrubber: scrub.New("hunter22")})
	for _, piece := range []string{"it is hun", "te", "r22, I said. h", "u"} {
		changed := s.Changed()
		say(s, piece)
		// Each piece meets an event that writes out what came before it.
		if err := s.Append(protocol.EventUsage, map[string]string{"note": "hunter22"}); err != nil {
			t.Fatal(err)
		}
		<-changed
	}
	if err := s.Append(protocol.EventFinished, nil); err != nil {
		t.Fatal(err)
	}
	if got := said(t, all(t, s, 1)); got != "it is "+scrub.Mark+", I said. hu" {
		t.Errorf("got %q", got)
	}
	for _, path := range segments(t, dir) {
		if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("hunter")) {
			t.Errorf("%s holds the secret, or error %v", path, err)
		}
	}
}

func segments(t testing.TB, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.events"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no segments in %s: %v", dir, err)
	}
	return paths
}

// TestExactlyOnceInOrder appends, reads, trims and crashes at random. A crash
// takes what was not yet durable, in whole or in part, and may leave garbage.
func TestExactlyOnceInOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		options := spool.Options{Segment: 512, Reserve: 1, TextWindow: time.Hour}
		s := open(t, dir, options)
		var states, received []string // marks of state events, in order
		var next, committed int64 = 1, 0
		marks := 0
		collect := func() {
			events, err := s.Read(next, 3, 400)
			if err != nil {
				rt.Fatal(err)
			}
			for _, e := range events {
				if e.Seq != next {
					rt.Fatalf("number %d after %d", e.Seq, next-1)
				}
				next++
				if e.Kind == protocol.EventUsage {
					received = append(received, string(e.Data))
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"state": func(*rapid.T) {
				marks++
				if err := s.Append(protocol.EventUsage, marks); err != nil {
					rt.Fatal(err)
				}
				states = append(states, fmt.Sprint(marks))
			},
			"text": func(rt *rapid.T) { say(s, rapid.StringN(1, 40, 80).Draw(rt, "text")) },
			"tool": func(*rapid.T) { s.Update(json.RawMessage(`{"sessionUpdate":"plan"}`)) },
			"read": func(*rapid.T) { collect() },
			"trim": func(rt *rapid.T) {
				committed = rapid.Int64Range(committed, next-1).Draw(rt, "committed")
				if err := s.Trim(committed); err != nil {
					rt.Fatal(err)
				}
			},
			"crash": func(rt *rapid.T) {
				paths := segments(t, dir)
				newest := paths[len(paths)-1]
				// What is durable is the prefix that a synced reader can see.
				durable := durableSize(rt, s, newest)
				size := fileSize(rt, newest)
				keep := rapid.Int64Range(durable, size).Draw(rt, "keep")
				if err := os.Truncate(newest, keep); err != nil {
					rt.Fatal(err)
				}
				garbage := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "garbage")
				f, err := os.OpenFile(newest, os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					rt.Fatal(err)
				}
				if _, err := f.Write(garbage); err != nil {
					rt.Fatal(err)
				}
				f.Close()
				s.Abandon()
				s = open(t, dir, options)
			},
			"": func(*rapid.T) {
				if s.Last() < next-1 {
					rt.Fatalf("event %d was read, and the spool ends with %d", next-1, s.Last())
				}
			},
		})
		if err := s.Sync(); err != nil {
			rt.Fatal(err)
		}
		for next <= s.Last() {
			collect()
		}
		if fmt.Sprint(received) != fmt.Sprint(states) {
			rt.Fatalf("received %v, want %v", received, states)
		}
	})
}

func fileSize(t *rapid.T, path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// durableSize is how much of the newest segment holds events that may have been
// read.
func durableSize(t *rapid.T, s *spool.Spool, path string) int64 {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var size int64
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return size
		}
		var e protocol.Event
		if err := json.Unmarshal(line[9:], &e); err != nil {
			t.Fatal(err)
		}
		if e.Seq > s.Durable() {
			return size
		}
		size += int64(len(line))
	}
}

// writeUntilKilled is the process that TestKilledWriter kills.
func writeUntilKilled(dir string) {
	s, err := spool.Open(dir, spool.Options{Segment: 4096})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for n := 1; ; n++ {
		say(s, "some text that is not waited for\n")
		if err := s.Append(protocol.EventUsage, n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(n)
	}
}

func TestKilledWriterLosesNoStateEvent(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SPOOL_WRITER="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acknowledged := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscan(lines.Text(), &acknowledged); err != nil {
			break // the last line was torn
		}
		if acknowledged == 100 {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || acknowledged < 100 {
		t.Fatalf("the writer ended with %v after %d events", err, acknowledged)
	}
	s := open(t, dir, spool.Options{})
	n := 0
	for _, e := range all(t, s, 1) {
		if e.Kind == protocol.EventUsage {
			if n++; string(e.Data) != fmt.Sprint(n) {
				t.Fatalf("state event %d holds %s", n, e.Data)
			}
		}
	}
	if n < acknowledged {
		t.Errorf("%d state events are left of %d", n, acknowledged)
	}
}

func TestFullDiskKeepsStateEvents(t *testing.T) {
	if os.Geteuid() != 0 {
		asRootOfNamespace(t)
		return
	}
	dir := filepath.Join(smallDisk(t), "spool")
	full := make(chan error, 1)
	s := open(t, dir, spool.Options{Reserve: 128 << 10, OnFull: func(err error) { full <- err }})
	line := strings.Repeat("build output ", 1000)
	var found error
	for found == nil {
		say(s, line)
		select {
		case found = <-full:
		default:
		}
	}
	if !errors.Is(found, spool.ErrFull) {
		t.Fatalf("told of %v", found)
	}
	// Somebody else takes whatever room is left: the reserve is not theirs.
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "hog"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	say(s, "this is lost")
	big := strings.Repeat("r", 60<<10)
	if err := s.Append(protocol.EventHalting, map[string]string{"reason": big}); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(protocol.EventUsage, strings.Repeat("u", 200<<10)); !errors.Is(err, spool.ErrFull) {
		t.Errorf("past the reserve: %v", err)
	}
	if err := s.Append(protocol.EventFinished, map[string]string{"report": big}); err != nil {
		t.Fatal(err)
	}
	check := func(s *spool.Spool) {
		t.Helper()
		events := all(t, s, 1)
		var tail []string
		for _, e := range events[len(events)-3:] {
			tail = append(tail, e.Kind)
		}
		if got := strings.Join(tail, " "); got != "output.truncated run.halting run.finished" {
			t.Errorf("the last events are %s", got)
		}
	}
	check(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check(open(t, dir, spool.Options{}))
}

// asRootOfNamespace runs the calling test again in a user namespace, where
// anybody may mount.
func asRootOfNamespace(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("in a user namespace: %v\n%s", err, out)
	}
}

// smallDisk mounts a file system of 1 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mount a small file system (as root, or in a user namespace): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}
