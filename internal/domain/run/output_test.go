package run

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// said is the event of a piece of a command's output.
func said(text string) protocol.Event {
	return ev(protocol.EventUpdate, map[string]any{
		"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": text},
	})
}

// TestOutput holds that the output of a command is all its pieces in order, with what
// other events say left out, for its own account alone; and that of a cut output the
// end follows.
func TestOutput(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		read := func(account, runID string) (all string) {
			t.Helper()
			f.write(func(tx *db.Tx) error {
				all = ""
				return tx.As(account, func() error {
					for after := int64(0); ; {
						text, next, err := Output(tx, runID, after)
						if all += text; err != nil || next == after {
							return err
						}
						after = next
					}
				})
			})
			return all
		}
		f.create(task.KindCI)
		st := f.claim(f.boxes[0])
		events, want := started(), ""
		for i := range 250 {
			events = append(events, said(fmt.Sprintln(i)))
			want += fmt.Sprintln(i)
		}
		events = append(events, ev(protocol.EventUpdate, map[string]any{"sessionUpdate": "agent_thought_chunk", "content": 1}))
		f.mustSay(f.boxes[0], st, 1, events...)
		one := 1
		f.mustSay(f.boxes[0], st, int64(len(events)+1),
			finished(protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: "x", ExitCode: &one, Output: "the end"}))
		if got := read(f.account, st.Run); got != want {
			t.Errorf("%d bytes of %d: %.80q", len(got), len(want), got)
		}
		if got := read("another", st.Run); got != "" {
			t.Errorf("another account reads %q", got)
		}

		f.create(task.KindCI)
		st = f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, append(started(), said("the beginning"),
			ev(protocol.EventTruncated, map[string]string{"reason": "text_limit"}),
			finished(protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: "x", ExitCode: &one, Output: "the end"}))...)
		if got := read(f.account, st.Run); !strings.HasPrefix(got, "the beginning\n[") || !strings.HasSuffix(got, "]\nthe end") ||
			strings.Count(got, "the box cut the output here") != 1 {
			t.Errorf("%q", got)
		}
	})
}
