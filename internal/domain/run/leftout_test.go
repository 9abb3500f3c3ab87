package run

import (
	"strings"
	"testing"

	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// TestLeftOut holds that what a box says was left out is on the run and beside the report,
// within the limits, whatever the box sends.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		if got := f.get("/v1/tasks/"+taskID+"/report", 200)["left_out"].([]any); len(got) != 0 {
			t.Errorf("before the end: %v", got)
		}
		left := []protocol.LeftOut{{Kind: protocol.LeftRepository, Name: "web", Why: "a repository of its own"},
			{Kind: "of a newer box", Name: strings.Repeat("x", 900) + "\x00", Why: "y"}, {Kind: protocol.LeftFile}}
		for range 60 {
			left = append(left, protocol.LeftOut{Kind: protocol.LeftFile, Name: "f", Why: "larger than 50 MB"})
		}
		f.mustSay(f.boxes[0], st, 1, append(started(),
			finished(protocol.Finished{State: protocol.Succeeded, Report: "Done.", Left: left, LeftMore: 3}))...)
		for _, where := range []map[string]any{f.get("/v1/tasks/"+taskID+"/report", 200),
			f.get("/v1/tasks/"+taskID+"/attempts", 200)["data"].([]any)[0].(map[string]any)} {
			got := where["left_out"].([]any)
			if len(got) != protocol.MaxLeft+1 {
				t.Fatalf("%d are left out", len(got))
			}
			first, second, last := got[0].(map[string]any), got[1].(map[string]any), got[len(got)-1].(map[string]any)
			if first["kind"] != "repository" || first["name"] != "web" || first["why"] != "a repository of its own" ||
				second["kind"] != "file" || len(second["name"].(string)) != protocol.MaxLeftBytes || last["why"] != "and 15 more" {
				t.Errorf("%v, %v … %v", first, second, last)
			}
		}
	})
}
