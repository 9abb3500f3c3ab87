package box

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"yardmaster/internal/protocol"
)

// work is the product of an attempt, as git and the agent's home show it.
type work struct {
	base      string
	tip       string // the newest commit, which includes what the agent left uncommitted
	something bool   // tip has commits of this attempt, or of the earlier one that it resumed
	paths     []string
	report    string // text of the agent's report file
	left      []protocol.LeftOut
	leftMore  int
}

// judge decides the outcome of a run from the agent's result and the state of git.
// An agent's exit code does not count: some agents end with 0 after a permanent
// 401.
func judge(start protocol.Start, r result, w work) protocol.Finished {
	f := protocol.Finished{
		Base: w.base, Stop: r.stop, Session: r.session, Usage: r.usage,
		ExitCode: r.exit, Output: r.output, Kind: r.kind, Error: r.detail, Busy: r.busy, State: protocol.Failed,
		Left: w.left, LeftMore: w.leftMore,
	}
	if f.Report, f.ReportBy = w.report, "report_md"; f.Report == "" {
		f.Report, f.ReportBy = r.text, "final_turn"
	}
	if f.Report == "" {
		f.ReportBy = ""
	}
	fail := func(kind, detail string) protocol.Finished {
		f.Kind, f.Error = kind, detail
		return f
	}
	switch {
	case r.kind == blockedKind:
		f.State = protocol.Blocked
		return f
	case r.kind != "":
		return f
	case start.Agent == commandAgent && r.exit == nil:
		return fail("agent_crashed", "The command was ended by force.")
	case start.Agent == commandAgent && *r.exit != 0:
		return fail("agent_error", fmt.Sprintf("The command ended with code %d.", *r.exit))
	case start.Agent == commandAgent:
	case r.stop == "max_tokens":
		return fail("context_overflow", "The agent ran out of tokens.")
	case r.stop == "max_turn_requests", r.stop == "refusal":
		return fail("gave_up", "The agent stopped: "+r.stop+".")
	case r.stop != "end_turn":
		return fail("agent_error", "The agent stopped for an unknown reason: "+r.stop+".")
	case !w.something && f.Report == "" && start.Branch != "":
		return fail("gave_up", "The agent ended its turn without commits and without a word.")
	case f.Report == "" && start.Branch == "":
		return fail("report_missing", "The agent ended its turn without a report.")
	}
	f.State = protocol.Succeeded
	return f
}

// noSpace tells whether an error is a full disk, also if only git's output says so.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		err != nil && strings.Contains(strings.ToLower(err.Error()), syscall.ENOSPC.Error())
}
