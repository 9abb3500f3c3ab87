package box

import (
	"testing"

	"yardmaster/internal/protocol"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	zero, one := 0, 1
	agentRun := protocol.Start{Agent: "claude", Branch: "svc/x"}
	scout := protocol.Start{Agent: "claude", Kind: "scout"}
	command := protocol.Start{Agent: commandAgent, Branch: "svc/x"}
	worked, nothing := work{something: true, tip: "t"}, work{}
	for _, c := range []struct {
		name  string
		start protocol.Start
		r     result
		w     work
		state string
		kind  string
		by    string
	}{
		{"commits and prose", agentRun, result{stop: "end_turn", text: "done"}, worked, protocol.Succeeded, "", "final_turn"},
		{"a report beats prose", agentRun, result{stop: "end_turn", text: "done"}, work{something: true, report: "# r"}, protocol.Succeeded,
			"", "report_md"},
		{"commits without a word", agentRun, result{stop: "end_turn"}, worked, protocol.Succeeded, "", ""},
		{"a reason for no commits", agentRun, result{stop: "end_turn", text: "nothing to do"}, nothing, protocol.Succeeded, "",
			"final_turn"},
		{"nothing at all", agentRun, result{stop: "end_turn"}, nothing, protocol.Failed, "gave_up", ""},
		{"no terminal event", agentRun, result{kind: "agent_crashed"}, worked, protocol.Failed, "agent_crashed", ""},
		{"tokens ran out", agentRun, result{stop: "max_tokens"}, worked, protocol.Failed, "context_overflow", ""},
		{"too many requests", agentRun, result{stop: "max_turn_requests"}, worked, protocol.Failed, "gave_up", ""},
		{"refusal", agentRun, result{stop: "refusal", text: "no"}, nothing, protocol.Failed, "gave_up", "final_turn"},
		{"cancelled by nobody", agentRun, result{stop: "cancelled"}, worked, protocol.Failed, "agent_error", ""},
		{"scout with an answer", scout, result{stop: "end_turn", text: "found"}, nothing, protocol.Succeeded, "", "final_turn"},
		{"scout without", scout, result{stop: "end_turn"}, nothing, protocol.Failed, "report_missing", ""},
		{"command", command, result{exit: &zero}, nothing, protocol.Succeeded, "", ""},
		{"command that fails", command, result{exit: &one}, worked, protocol.Failed, "agent_error", ""},
		{"command that was killed", command, result{}, worked, protocol.Failed, "agent_crashed", ""},
		{"command that could not start", command, result{kind: "setup_failed"}, nothing, protocol.Failed, "setup_failed", ""},
	} {
		f := judge(c.start, c.r, c.w)
		if f.State != c.state || f.Kind != c.kind || f.ReportBy != c.by {
			t.Errorf("%s: %s %s, report by %q", c.name, f.State, f.Kind, f.ReportBy)
		}
		if (f.Kind != "") != (f.State == protocol.Failed) {
			t.Errorf("%s: state %s with kind %q", c.name, f.State, f.Kind)
		}
	}
}
