package run

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"

	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
)

// maxActivity is the longest activity, in bytes.
const maxActivity = 200

// activity is the title of the newest tool call among events, in one line; nil if none has
// one. The box has taken secrets out of it, as of all events.
func activity(events []protocol.Event) *string {
	for i := len(events) - 1; i >= 0; i-- {
		e := &events[i]
		if e.Kind != protocol.EventUpdate || !bytes.Contains(e.Data, []byte(`"title"`)) {
			continue
		}
		var u struct {
			Kind  string `json:"sessionUpdate"`
			Title string `json:"title"`
		}
		if json.Unmarshal(e.Data, &u) != nil || u.Kind != "tool_call" && u.Kind != "tool_call_update" {
			continue
		}
		words := strings.FieldsFunc(u.Title, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		if title := clean(strings.Join(words, " "), maxActivity); title != "" {
			return &title
		}
	}
	return nil
}

// Activities are the activities of the live runs of tasks of tx.Account, by task: of those
// with the ids, or of all for nil. Tasks whose agent has called no tool are missing.
func Activities(tx *db.Tx, taskIDs []string) (map[string]string, error) {
	var rows []activityRow
	var err error
	if taskIDs == nil {
		rows, err = selectActivities.All(tx, tx.Account)
	} else {
		rows, err = activitiesOf(tx, taskIDs)
	}
	out := make(map[string]string, len(rows))
	for _, r := range rows {
		out[r.TaskID] = r.Activity
	}
	return out, err
}
