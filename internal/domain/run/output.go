package run

import (
	"encoding/json"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
)

// Output answers a piece of what the command of a run of tx.Account wrote, from its
// events after the number after, and the number to go on with. next is after when there
// are no more events. Where the box cut the output, the piece says so; the box keeps
// the end, which follows.
func Output(tx *db.Tx, runID string, after int64) (text string, next int64, err error) {
	rows, err := selectOutput.All(tx, tx.Account, runID, after)
	if err != nil {
		return "", after, err
	}
	var all strings.Builder
	next = after
	for _, e := range rows {
		next = e.Seq
		switch e.Kind {
		case protocol.EventUpdate:
			var u struct {
				Kind    string `json:"sessionUpdate"`
				Content struct {
					Text string `json:"text"`
				} `json:"content"`
			}
			// An update that is not of this form has no output.
			if json.Unmarshal([]byte(e.Data), &u) == nil && u.Kind == "agent_message_chunk" {
				all.WriteString(u.Content.Text)
			}
		case protocol.EventTruncated:
			all.WriteString("\n[the box cut the output here]\n")
		case protocol.EventFinished:
			cut, err := wasCut.One(tx, runID)
			if err != nil {
				return "", after, err
			}
			var f protocol.Finished
			if cut && json.Unmarshal([]byte(e.Data), &f) == nil && f.Output != "" {
				all.WriteString("\n[and this is how it ended]\n" + f.Output)
			}
		}
	}
	return all.String(), next, nil
}
