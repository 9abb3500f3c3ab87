package run

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

func tool(kind, title string) protocol.Event {
	return ev(protocol.EventUpdate, map[string]any{"sessionUpdate": kind, "toolCallId": "1", "title": title})
}

// TestActivity holds that a running task says which tool its agent has called last, and
// that no other task does.
func TestActivity(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindScout)
		shows := func(want any) {
			t.Helper()
			if got := f.get("/v1/tasks/"+taskID, 200)["activity"]; got != want {
				t.Errorf("activity %v, want %v", got, want)
			}
			var all map[string]string
			if err := f.DB.Read(f.ctx(), func(tx *db.Tx) (err error) {
				all, err = Activities(tx, nil)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if got, ok := all[taskID]; ok != (want != nil) || ok && got != want {
				t.Errorf("of all: %q", all)
			}
		}
		shows(nil)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		shows(nil)
		f.mustSay(f.boxes[0], st, 5, tool("tool_call", "Read main.go"), tool("tool_call", "Run\n the  tests\x1b"),
			tool("tool_call_update", ""), tool("agent_message_chunk", "not this"))
		shows("Run the tests")
		f.mustSay(f.boxes[0], st, 9, ev(protocol.EventUpdate, "title"))
		shows("Run the tests")
		f.mustSay(f.boxes[0], st, 10, tool("tool_call_update", "Edit main.go"))
		shows("Edit main.go")
		f.mustSay(f.boxes[0], st, 11, finished(protocol.Finished{State: protocol.Failed, Kind: task.AgentError}))
		shows(nil)
		f.pass(task.DefaultBackoff[0])
		st = f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		shows(nil) // the next run has called none
	})
}
