package session

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
	"yardmaster/internal/protocol"
)

// Candidate is the part of a policy file that decides something: of the policy that
// applied to a run, or of the one that its session is replayed under. An empty text
// or nil decides nothing.
type Candidate struct {
	Template     string        `json:"template,omitempty"`
	Isolation    string        `json:"isolation,omitempty"` // the least that is accepted
	CheckCommand string        `json:"check_command,omitempty"`
	CheckTimeout time.Duration `json:"check_timeout,omitempty"`
	MergeMode    string        `json:"merge_mode,omitempty"` // ask, auto or never
	MergeMethod  string        `json:"merge_method,omitempty"`
	DeleteBranch bool          `json:"delete_branch,omitempty"`
	OnCancel     string        `json:"on_cancel,omitempty"` // close or keep
	Conflicts    string        `json:"conflicts,omitempty"`
	TaskMicros   *int64        `json:"task_micros,omitempty"`
	RunMicros    *int64        `json:"run_micros,omitempty"`
	// Digests of texts that are long and whose effect cannot be told.
	Instructions string `json:"instructions,omitempty"`
	MCPServers   string `json:"mcp_servers,omitempty"`
}

type replayIn struct {
	ID  string `json:"id" format:"uuid" doc:"id of the session"`
	YML string `json:"yml" maxLength:"65536" doc:"the candidate policy file"`
}

// PolicyReplay is the answer of session.replay.
type PolicyReplay struct {
	_         struct{}         `doc:"What another policy would have decided in a session." schema:"PolicyReplay"`
	SessionID string           `json:"session_id" format:"uuid" doc:"id of the session"`
	Same      bool             `json:"same" example:"false" doc:"nothing would have been decided otherwise: there is no diff, and nothing is unknown"`
	Diff      []PolicyDecision `json:"diff" doc:"the decisions that would have come out otherwise"`
	Unknown   []string         `json:"unknown" example:"[\"checks.command\"]" doc:"keys that the candidate sets otherwise than the policy that was, where the record of this session does not tell what that would have changed"`
}

// PolicyDecision is one decision that would have changed.
type PolicyDecision struct {
	_         struct{} `doc:"One decision that would have come out otherwise." schema:"PolicyDecision"`
	Key       string   `json:"key" example:"merge.mode" doc:"of the policy file"`
	Recorded  *string  `json:"recorded" example:"ask" doc:"what was; null: nothing"`
	Candidate *string  `json:"candidate" example:"auto" doc:"what would have been; null: nothing"`
	Effect    string   `json:"effect" example:"The pull request would have been merged without asking." doc:"what that would have meant, for people"`
}

// replay compares the recorded facts of a finished session with another policy file.
// It changes nothing.
func (s *Service) replay(ctx context.Context, in replayIn) (out PolicyReplay, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		if r.EndedAt == nil {
			return fault.Reason("session_running", "The session has not ended yet: there is nothing to replay.")
		}
		f, err := s.facts(tx, r)
		if err != nil {
			return err
		}
		c, problems, err := s.Policies.Parse(tx, f.RepoID, in.YML)
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			bad := fault.Field("yml", "")
			bad.Fields["yml"] = problems
			return bad
		}
		out = f.replay(c)
		out.SessionID = r.ID
		return nil
	})
	return out, err
}

// facts reads the recorded facts of a session.
func (s *Service) facts(tx *db.Tx, r row) (facts, error) {
	f, _, err := selectFacts.Maybe(tx, tx.Account, r.ID)
	if err == nil && r.RunID != nil {
		f.Run, err = s.Runs.Record(tx, *r.RunID)
	}
	return f, err
}

// strength orders the levels of isolation; an unknown level is the weakest.
var strength = map[string]int{"none": 0, "best": 1, "landlock": 2, "bubblewrap": 3}

// isolated is the strength of the run's isolation. A level that did not keep the
// promises of its name counts as best at most.
func (f facts) isolated() int {
	rank := strength[*f.Run.Isolation]
	if f.Run.IsolationHolds == nil || !protocol.Keeps(*f.Run.Isolation, f.Run.IsolationHolds) {
		rank = min(rank, strength["best"])
	}
	return rank
}

// verdict collects the decisions that a candidate changes.
type verdict struct{ PolicyReplay }

func (v *verdict) changed(key, was, would, effect string) {
	v.Diff = append(v.Diff, PolicyDecision{Key: key, Recorded: orNull(was), Candidate: orNull(would), Effect: effect})
}

func (v *verdict) unknown(key string) { v.Unknown = append(v.Unknown, key) }

// replay decides again from the facts. A key that the candidate sets as the policy
// did decides the same; for another key the facts tell the effect, or the effect is
// unknown.
func (f facts) replay(c Candidate) PolicyReplay {
	v := &verdict{PolicyReplay{Diff: []PolicyDecision{}, Unknown: []string{}}}
	was := Candidate{}
	known := f.Policy != nil
	if known {
		was = f.Policy.V
	}
	// differs tells whether a key may decide otherwise, given whether it is the same.
	differs := func(same bool) bool { return !known || !same }

	if differs(was.Template == c.Template) {
		f.template(v, c)
	}
	if differs(was.Isolation == c.Isolation) {
		switch {
		case f.Run.Isolation == nil:
			v.unknown("agent.isolation")
		case f.isolated() < strength[c.Isolation]:
			v.changed("agent.isolation", *f.Run.Isolation, c.Isolation, "The box that ran it would not have been given the task.")
		}
	}
	if differs(was.CheckCommand == c.CheckCommand) {
		f.command(v, c)
	}
	if c.CheckCommand != "" && differs(was.CheckTimeout == c.CheckTimeout) {
		f.timeout(v, was, c, known)
	}
	if differs(was.MergeMode == c.MergeMode) {
		f.mode(v, c)
	}
	if differs(was.MergeMethod == c.MergeMethod) {
		f.merged(v, known, "merge.method", was.MergeMethod, c.MergeMethod, "It would have been merged the other way.")
	}
	if differs(was.DeleteBranch == c.DeleteBranch) {
		effect := "Its branch would have been left."
		if c.DeleteBranch {
			effect = "Its branch would have been deleted."
		}
		f.merged(v, known, "merge.delete_branch", strconv.FormatBool(was.DeleteBranch), strconv.FormatBool(c.DeleteBranch), effect)
	}
	if f.MergedAt == nil && differs(was.OnCancel == c.OnCancel) { // a cancel does not close a merged pull request
		v.unknown("merge.on_cancel")
	}
	if differs(equal(was.RunMicros, c.RunMicros)) {
		f.spending(v, "budget.run_usd", c.RunMicros, f.CostMicros, f.Unpriced)
	}
	if differs(equal(was.TaskMicros, c.TaskMicros)) && f.OwnBudget == nil { // the task's own budget goes before the policy's
		f.spending(v, "budget.task_usd", c.TaskMicros, f.TaskCost, f.TaskUnpriced)
	}
	// No record tells which other work was open, or how an agent acts on instructions
	// and tools.
	for _, k := range []struct {
		key      string
		was, now string
	}{
		{"conflicts", was.Conflicts, c.Conflicts},
		{"instructions", was.Instructions, c.Instructions},
		{"mcp_servers", was.MCPServers, c.MCPServers},
	} {
		if differs(k.was == k.now) {
			v.unknown(k.key)
		}
	}
	v.Same = len(v.Diff) == 0 && len(v.Unknown) == 0
	return v.PolicyReplay
}

// equal compares two limits; nil is no limit.
func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// template judges agent.template by the template of the run.
func (f facts) template(v *verdict, c Candidate) {
	switch {
	case f.Run.Template != nil && *f.Run.Template == c.Template:
	case f.Run.Template == nil || f.Policy != nil && f.Policy.V.Template != *f.Run.Template:
		// The task named the template itself, or the policy did when the task was made.
		v.unknown("agent.template")
	default:
		v.changed("agent.template", *f.Run.Template, c.Template,
			"Another template would have run, unless the task named this one itself.")
	}
}

// command judges checks.command by the newest check of the task's pull request.
func (f facts) command(v *verdict, c Candidate) {
	switch {
	case f.PRID == nil:
		v.unknown("checks.command")
	case f.Command == nil && c.CheckCommand == "", f.Command != nil && *f.Command == c.CheckCommand:
	case f.Command == nil:
		v.changed("checks.command", "", c.CheckCommand, "The pull request would have been checked.")
	case c.CheckCommand == "":
		v.changed("checks.command", *f.Command, "", "The pull request would not have been checked.")
	default:
		v.changed("checks.command", *f.Command, c.CheckCommand, "Another command would have checked the pull request.")
	}
}

// timeout judges checks.timeout by the duration of that check.
func (f facts) timeout(v *verdict, was, c Candidate, known bool) {
	switch limit := c.CheckTimeout.Microseconds(); {
	case f.CheckMicros == nil, f.Command == nil || *f.Command != c.CheckCommand:
		v.unknown("checks.timeout")
	case *f.CheckMicros > limit:
		took := time.Duration(*f.CheckMicros) * time.Microsecond
		v.changed("checks.timeout", took.String(), c.CheckTimeout.String(), "The check would have been cut off, and failed.")
	case !known || *f.CheckMicros >= was.CheckTimeout.Microseconds(): // the check may have been cut off
		v.unknown("checks.timeout")
	}
}

// mode judges merge.mode by the decision about the task's pull request: a person was
// asked, or the policy ordered the merge.
func (f facts) mode(v *verdict, c Candidate) {
	did := ""
	switch {
	case f.ByPolicy > 0:
		did = "auto"
	case f.Asked > 0:
		did = "ask"
	}
	switch {
	case did == "":
		v.unknown("merge.mode")
	case did == c.MergeMode:
	case c.MergeMode == "never":
		v.changed("merge.mode", did, c.MergeMode, "The pull request would have been left to people.")
	case c.MergeMode == "auto":
		v.changed("merge.mode", did, c.MergeMode, "The pull request would have been merged without asking.")
	default:
		v.changed("merge.mode", did, c.MergeMode, "The pull request would have waited for a person.")
	}
}

// merged judges a key about how to merge. Its effect is unknown without a merge, and a
// merge by hand does not follow the policy.
func (f facts) merged(v *verdict, known bool, key, was, would, effect string) {
	switch {
	case f.MergedAt != nil && f.Applied == 0:
		return
	case !known || f.MergedAt == nil:
		v.unknown(key)
		return
	}
	v.changed(key, was, would, effect)
}

// spending judges a limit in dollars. A run that was stopped could have cost more, and
// where a limit applies, calls to models without a price are refused.
func (f facts) spending(v *verdict, key string, limit, cost *int64, unpriced int64) {
	stopped := f.Run.FailureKind != nil && (*f.Run.FailureKind == "budget_exhausted" || *f.Run.FailureKind == "unpriced_model")
	spent := int64(0)
	if cost != nil {
		spent = *cost
	}
	switch {
	case limit == nil && stopped:
		v.unknown(key)
	case limit == nil:
	case unpriced > 0:
		v.changed(key, "", money.Dollars(*limit), "The work would have been parked at the first call of a model without a price.")
	case spent > *limit:
		v.changed(key, money.Dollars(spent), money.Dollars(*limit),
			fmt.Sprintf("The work would have been parked before it cost %s dollars.", money.Dollars(*limit)))
	case stopped:
		v.unknown(key)
	}
}
