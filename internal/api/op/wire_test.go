package op_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
)

type timely struct {
	Value   time.Time   `json:"value"`
	Pointer *time.Time  `json:"pointer"`
	None    *time.Time  `json:"none"`
	List    []time.Time `json:"list"`
	Any     any         `json:"any"`
}

// TestTimesHaveMilliseconds holds that times in answers and frames are written in UTC
// with milliseconds at most, in every kind of field, so that no capability has to
// shorten its times.
func TestTimesHaveMilliseconds(t *testing.T) {
	at := time.Date(2026, 3, 14, 10, 26, 53, 589_793_238, time.FixedZone("", 3600))
	const text = `"2026-03-14T09:26:53.589Z"`
	const want = `{"value":` + text + `,"pointer":` + text + `,"none":null,"list":[` + text + `],"any":` + text + `}`
	out := timely{Value: at, Pointer: &at, List: []time.Time{at}, Any: at}

	h := build(dbtest.SQLite(t))
	h.ops = append(h.ops,
		op.New(op.Row{ID: "time.get", Method: "GET", Path: "/v1/time", Rule: policy.Require(policy.ReadTasks), Group: "Times"},
			func(context.Context, struct{}) (timely, error) { return out, nil }),
		op.Stream(op.Row{ID: "time.tail", Method: "GET", Path: "/v1/time/tail", Rule: policy.Require(policy.ReadTasks), Group: "Times"},
			func(_ context.Context, _ struct{}, s *op.Sink) error { return s.Send("1", "time", out) }))
	if got := h.ask(t.Context(), "time.get", "read:tasks", "", "{}"); got.Status != 200 || strings.TrimSpace(string(got.Body)) != want {
		t.Errorf("the answer is %d %s, want %s", got.Status, got.Body, want)
	}
	if got := h.ask(t.Context(), "time.tail", "read:tasks", "", "{}"); !strings.Contains(string(got.Body), "data: "+want+"\n") {
		t.Errorf("the frame is %s, want %s", got.Body, want)
	}
	if frame, err := op.Frame("time", out); err != nil || !strings.Contains(string(frame), "data: "+want+"\n") {
		t.Errorf("the frame for many is %s, %v", frame, err)
	}
}
