package spool_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/box/scrub"
	"yardmaster/internal/box/spool"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

func piece(s *spool.Spool, id, text string) {
	raw, _ := json.Marshal(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress",
		"_meta": map[string]any{"terminal_output_delta": map[string]string{"terminal_id": id, "data": text}}})
	s.Update(raw)
}

// whole says all of a tool's output again, as some agents do.
func whole(s *spool.Spool, id, status, text string) {
	raw, _ := json.Marshal(map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "title": "Shell",
		"content": []any{map[string]any{"type": "content", "content": map[string]string{"type": "text", "text": text}}}})
	s.Update(raw)
}

// put is what a tool has put out while it ran, and in how many pieces.
func put(t *testing.T, events []protocol.Event, id string) (text string, pieces int) {
	t.Helper()
	for _, e := range events {
		var u struct {
			ToolCallID string
			Status     string
			Meta       struct {
				Delta *struct{ Data string } `json:"terminal_output_delta"`
			} `json:"_meta"`
		}
		if e.Kind != protocol.EventUpdate {
			continue
		}
		if err := json.Unmarshal(e.Data, &u); err != nil {
			t.Fatal(err)
		}
		if u.ToolCallID == id && u.Meta.Delta != nil {
			if u.Status != "in_progress" {
				t.Errorf("a piece of a tool that is over: %s", e.Data)
			}
			text += u.Meta.Delta.Data
			pieces++
		}
	}
	return text, pieces
}

func TestToolOutputArrivesInTime(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{LiveWindow: time.Millisecond})
	changed := s.Changed()
	piece(s, "1", "compiling\n")
	patience.Ended(t, "a change of the spool", changed)
	if text, _ := put(t, all(t, s, 1), "1"); text != "compiling\n" {
		t.Errorf("got %q", text)
	}
	s = open(t, t.TempDir(), spool.Options{LiveWindow: time.Hour})
	changed = s.Changed()
	piece(s, "1", strings.Repeat("x", 17_000)) // does not wait for the window
	<-changed
}

// TestToolOutputIsGathered holds that pieces are gathered, that whole outputs
// become pieces, and that the result comes last and complete, whatever other
// updates come in between.
func TestToolOutputIsGathered(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{LiveWindow: time.Hour})
	for i := range 50 {
		piece(s, "1", fmt.Sprintln(i))
		whole(s, "2", "in_progress", strings.Repeat("ab\n", i+1))
	}
	say(s, "meanwhile")
	whole(s, "1", "completed", "the result")
	whole(s, "2", "failed", strings.Repeat("ab\n", 50)+"and no more")
	s.Update(json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":"3","status":"completed",` +
		`"_meta":{"terminal_output_delta":{"data":"all at once"},"terminal_exit":{"exit_code":0}}}`))
	if err := s.Append(protocol.EventFinished, nil); err != nil {
		t.Fatal(err)
	}
	events := all(t, s, 1)
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintln(&lines, i)
	}
	for id, want := range map[string]string{"1": lines.String(), "2": strings.Repeat("ab\n", 50), "3": "all at once"} {
		if text, pieces := put(t, events, id); text != want || pieces != 1 {
			t.Errorf("tool %s put out %q in %d pieces", id, text, pieces)
		}
	}
	var order []string
	for _, e := range events {
		switch text := string(e.Data); {
		case strings.Contains(text, "the result"):
			order = append(order, "result 1")
		case strings.Contains(text, "and no more"):
			order = append(order, "result 2")
		case strings.Contains(text, `"terminal_exit"`):
			order = append(order, "result 3")
		case strings.Contains(text, "terminal_output_delta"):
			order = append(order, "piece")
		case strings.Contains(text, "meanwhile"):
			order = append(order, "text")
		case strings.Contains(text, `"title":"Shell"`):
			order = append(order, "title") // is told once, with the first output
		}
	}
	if got := strings.Join(order, ", "); got != "title, piece, text, result 1, piece, result 2, piece, result 3" {
		t.Errorf("in the order %s", got)
	}
}

// TestSecretAcrossToolOutputIsNeverWritten holds that a secret that spans two
// pieces, two whole outputs, or the last piece and the rest is never written.
func TestSecretAcrossToolOutputIsNeverWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, spool.Options{LiveWindow: time.Nanosecond, Scrubber: scrub.New("hunter22")})
	for _, text := range []string{"a hun", "te", "r22 b hunt"} {
		piece(s, "1", text)
		if err := s.Append(protocol.EventUsage, nil); err != nil { // writes out what came before
			t.Fatal(err)
		}
	}
	s.Update(json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed",` +
		`"_meta":{"terminal_output_delta":{"data":"er22 c"}}}`))
	for _, text := range []string{"x hun", "x hunter2", "x hunter22 y"} {
		whole(s, "2", "in_progress", text)
		if err := s.Append(protocol.EventUsage, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Append(protocol.EventFinished, nil); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"1": "a " + scrub.Mark + " b " + scrub.Mark + " c", "2": "x " + scrub.Mark + " y"} {
		if got, _ := put(t, all(t, s, 1), id); got != want {
			t.Errorf("tool %s: %q", id, got)
		}
	}
	for _, path := range segments(t, dir) {
		if b, err := os.ReadFile(path); err != nil || bytes.Contains(b, []byte("hun")) {
			t.Errorf("%s holds the secret, or error %v", path, err)
		}
	}
}

// TestToolOutputIsBounded holds that the output of tools takes only a part of an
// attempt's limit, so that the results and the agent's own text have the rest.
func TestToolOutputIsBounded(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{LiveWindow: time.Hour, TextTotal: 100_000})
	for range 1000 {
		piece(s, "1", strings.Repeat("y", 99)+"\n")
	}
	text, _ := put(t, all(t, s, 1), "1")
	if len(text) > 40_000 || len(text) < 20_000 {
		t.Errorf("%d bytes of one tool", len(text))
	}
	for i := range 100 { // more tools than may run at a time
		piece(s, fmt.Sprint("t", i), strings.Repeat("z", 5000))
	}
	say(s, "done\n")
	s.Update(json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}`))
	if err := s.Append(protocol.EventFinished, nil); err != nil {
		t.Fatal(err)
	}
	events, live := all(t, s, 1), 0
	for _, e := range events {
		if e.Kind == protocol.EventTruncated {
			t.Errorf("cut: %s", e.Data)
		}
		if strings.Contains(string(e.Data), "terminal_output_delta") {
			live += len(e.Data)
		}
	}
	if said(t, events) != "done\n" || live > 45_000 {
		t.Errorf("said %q beside %d bytes of tools", said(t, events), live)
	}
	// One call that is longer than a call may be ends with a word about it.
	s = open(t, t.TempDir(), spool.Options{LiveWindow: time.Hour})
	for range 1000 {
		piece(s, "1", strings.Repeat("y", 99)+"\n")
	}
	whole(s, "1", "completed", "the result")
	if text, _ := put(t, all(t, s, 1), "1"); len(text) > 33_000 || !strings.HasSuffix(text, "[more comes with the result]\n") {
		t.Errorf("%d bytes that end with %q", len(text), text[max(0, len(text)-40):])
	}
}

// TestToolOutputThatIsRewritten holds that an output that does not continue the
// former one is left to the result.
func TestToolOutputThatIsRewritten(t *testing.T) {
	s := open(t, t.TempDir(), spool.Options{LiveWindow: time.Hour})
	for _, text := range []string{"10 %", "10 % 20 %", "90 %", "100 %"} {
		whole(s, "1", "in_progress", text)
	}
	s.Update(json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":"2","status":"in_progress","content":[{"type":"diff",` +
		`"path":"a"}]}`))
	whole(s, "1", "completed", "100 %")
	events := all(t, s, 1)
	if text, _ := put(t, events, "1"); text != "10 % 20 %" {
		t.Errorf("put out %q", text)
	}
	if diff := string(events[1].Data); !strings.Contains(diff, `"diff"`) {
		t.Errorf("the update of another tool is %s", diff)
	}
}

// TestLongToolsAreToldLessOften holds that a tool that runs for long leaves few events,
// and that the next one is told at once again.
func TestLongToolsAreToldLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir(), spool.Options{LiveWindow: time.Second})
		from := time.Now()
		for i := range 200 {
			changed := s.Changed()
			piece(s, "long", fmt.Sprint(i, "\n"))
			<-changed
		}
		// 20 pieces at each of the windows of 1 to 7 s, and 60 at 8 s.
		if took, want := time.Since(from), time.Second*(20*28+60*8); took != want {
			t.Errorf("200 pieces within %v, want %v", took, want)
		}
		if _, n := put(t, all(t, s, 1), "long"); n != 200 {
			t.Errorf("%d pieces", n)
		}
	})
}
