package run

import (
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// TestResultSchema holds that a run whose result does not fit the schema fails,
// that its pushed commits are kept, and that the next run's brief says why the
// result was refused.
func TestResultSchema(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		schema := `{"type":"object","required":["sum"],"properties":{"sum":{"type":"integer"}}}`
		var taskID string
		f.write(func(tx *db.Tx) error {
			row, err := f.Tasks.Create(tx, task.Repo{ID: f.account},
				task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "Add it up",
					Problem: "Add it up.", Template: "default", ResultSchema: &schema})
			taskID = row.ID
			return err
		})
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, append(started(), finished(protocol.Finished{State: protocol.Succeeded, Tip: "t1", Base: "b",
			Report: "401 unauthorized?\n```json\n{\"sum\": \"401\"}\n```"}))...)
		row := f.wantStatus(taskID, task.Pending)
		if row.FailureKind == nil || *row.FailureKind != task.AgentError || row.Charged != 1 || row.WIPSHA == nil || *row.WIPSHA != "t1" {
			t.Fatalf("after a result that does not fit: %+v", row)
		}
		f.pass(time.Minute)
		st = f.claim(f.boxes[0])
		if !strings.Contains(st.Prompt, "integer") || !strings.Contains(st.Prompt, "under the result schema") {
			t.Errorf("the next try is not told:\n%s", st.Prompt)
		}
		f.mustSay(f.boxes[0], st, 1, append(started(), finished(protocol.Finished{State: protocol.Succeeded, Report: "I forgot."}))...)
		if row := f.wantStatus(taskID, task.Pending); *row.FailureKind != task.ReportMissing || row.Charged != 2 {
			t.Errorf("after none: %+v", row)
		}
		f.pass(time.Hour)
		st = f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, append(started(),
			finished(protocol.Finished{State: protocol.Succeeded, Report: "Here.\n```json\n{\"sum\": 401}\n```"}))...)
		f.wantStatus(taskID, task.Completed)
		if got := f.get("/v1/tasks/"+taskID+"/report", 200)["result"]; got == nil || got.(map[string]any)["sum"] != 401.0 {
			t.Errorf("result %v", got)
		}
	})
}
