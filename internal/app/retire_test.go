package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/patience"
)

// A real box that is decommissioned in the middle of a run hands back what was
// done, and is revoked only then; it has told how open its machine is.
func TestDecommissionSavesTheWork(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README": "hello\n"})
	y.send("PUT", "/v1/templates/slow", y.owner,
		`{"agent": "command", "command": ["sh", "-c", "echo half > work; echo begun; exec sleep 600"]}`).want(200)
	var e struct{ Token string }
	decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, `{}`).want(201), &e)
	var task struct {
		ID string `json:"task_id"`
	}
	decode(t, y.send("POST", "/v1/tasks", y.owner,
		`{"repo": "acme/web", "title": "t", "problem": "p", "template": "slow"}`).want(202), &task)
	y.box(e.Token)
	var boxes struct {
		Data []struct {
			ID, State string
			Hardening *struct{ Firewall string }
			RevokesAt *string `json:"revokes_at"`
		}
	}
	list := func() int {
		decode(t, y.send("GET", "/v1/runners", y.owner, "").want(200), &boxes)
		return len(boxes.Data)
	}
	var now struct {
		Status string
		RunID  *string `json:"run_id"`
		WIP    *struct{ SHA string }
	}
	look := func() { decode(t, y.send("GET", "/v1/tasks/"+task.ID, y.owner, "").want(200), &now) }
	patience.Until(y.t, "the agent has begun, and the machine is reported", func() bool {
		if look(); now.RunID == nil || list() != 1 || boxes.Data[0].Hardening == nil {
			return false
		}
		return strings.Contains(string(y.send("GET", "/v1/tasks/"+task.ID+"/events", y.owner, "").body), "begun")
	})
	run := *now.RunID
	var out struct {
		Status, State string
		HandingBack   int `json:"handing_back"`
	}
	decode(t, y.send("POST", "/v1/runners/"+boxes.Data[0].ID+"/decommission", y.owner, "").want(200), &out)
	if out.Status != "draining" || out.State != "draining" || out.HandingBack != 1 {
		t.Errorf("%+v", out)
	}
	patience.Until(y.t, "the box is off the list", func() bool { return list() == 0 })
	if look(); now.Status != "pending" || now.WIP == nil || now.WIP.SHA == "" {
		t.Errorf("the work was not saved: %+v", now)
	}
	var kinds struct {
		Data []struct{ Kind, Object, Data any }
	}
	decode(t, y.send("GET", "/v1/audit/events?per_page=200", y.owner, "").want(200), &kinds)
	var order []string
	for _, row := range slices.Backward(kinds.Data) {
		switch kind := fmt.Sprint(row.Kind); kind {
		case "box.decommission_requested", "box.emptied", "box.revoked", "runner.decommissioned":
			order = append(order, kind)
		case "run.ended":
			if row.Object == run && !strings.Contains(fmt.Sprint(row.Data), "box_drained") {
				t.Errorf("the run ended with %v", row.Data)
			}
		}
	}
	if got := strings.Join(order, " "); got != "box.decommission_requested box.emptied box.revoked runner.decommissioned" {
		t.Errorf("in this order: %s", got)
	}
}
