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

// Candidate is a policy as far as it decides something: the one that a run was
// under, and the one that its session is replayed under. An empty text or nil
// decides nothing.
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
	// Digests: what they are of is long, and nobody can tell what it would have
	// done.
	Instructions string `json:"instructions,omitempty"`
	MCPServers   string `json:"mcp_servers,omitempty"`
}

type replayIn struct {
	ID  string `json:"id" format:"uuid" doc:"id of the session"`
	YML string `json:"yml" maxLength:"65536" doc:"the candidate policy file"`
}

// PolicyReplay is what a candidate policy would have decided otherwise.
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

// replay holds a finished session against a policy. It changes nothing.
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

// facts gathers what the record of a session tells.
func (s *Service) facts(tx *db.Tx, r row) (facts, error) {
	f, _, err := selectFacts.Maybe(tx, tx.Account, r.ID)
	if err == nil && r.RunID != nil {
		f.Run, err = s.Runs.Record(tx, *r.RunID)
	}
	return f, err
}

// strength orders the levels of isolation; what is not known is the weakest.
var strength = map[string]int{"none": 0, "best": 1, "landlock": 2, "bubblewrap": 3}

// isolated is how strongly it was: a level that did not hold what its name
// promises is better than none, and no more.
func (f facts) isolated() int {
	rank := strength[*f.Run.Isolation]
	if f.Run.IsolationHolds == nil || !protocol.Keeps(*f.Run.Isolation, f.Run.IsolationHolds) {
		rank = min(rank, strength["best"])
	}
	return rank
}

// verdict gathers what a candidate changes.
type verdict struct{ PolicyReplay }

func (v *verdict) changed(key, was, would, effect string) {
	v.Diff = append(v.Diff, PolicyDecision{Key: key, Recorded: text(was), Candidate: text(would), Effect: effect})
}

func (v *verdict) unknown(key string) { v.Unknown = append(v.Unknown, key) }

// text is nothing for nothing.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// replay decides anew what the record of a session tells about. A key that the
// candidate sets as it was decides as it did; of any other the record says what
// would have come of it, or it is unknown.
func (f facts) replay(c Candidate) PolicyReplay {
	v := &verdict{PolicyReplay{Diff: []PolicyDecision{}, Unknown: []string{}}}
	was := Candidate{}
	known := f.Policy != nil
	if known {
		was = f.Policy.V
	}
	// differs tells whether a key may have decided otherwise.
	differs := func(as bool) bool { return !known || !as }

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
	if f.MergedAt == nil && differs(was.OnCancel == c.OnCancel) { // what was merged no cancel closes
		v.unknown("merge.on_cancel")
	}
	if differs(equal(was.RunMicros, c.RunMicros)) {
		f.spending(v, "budget.run_usd", c.RunMicros, f.CostMicros, f.Unpriced)
	}
	if differs(equal(was.TaskMicros, c.TaskMicros)) && f.OwnBudget == nil { // a budget of its own goes before the policy's
		f.spending(v, "budget.task_usd", c.TaskMicros, f.TaskCost, f.TaskUnpriced)
	}
	// Which other work was open, and what an agent makes of words and tools, no
	// record tells.
	for _, k := range []struct {
		key      string
		was, now string
	}{{"conflicts", was.Conflicts, c.Conflicts}, {"instructions", was.Instructions, c.Instructions}, {"mcp_servers", was.MCPServers, c.MCPServers}} {
		if differs(k.was == k.now) {
			v.unknown(k.key)
		}
	}
	v.Same = len(v.Diff) == 0 && len(v.Unknown) == 0
	return v.PolicyReplay
}

func equal(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

func (f facts) template(v *verdict, c Candidate) {
	switch {
	case f.Run.Template != nil && *f.Run.Template == c.Template:
	case f.Run.Template == nil || f.Policy != nil && f.Policy.V.Template != *f.Run.Template: // the task's own, or the policy's when the task was made
		v.unknown("agent.template")
	default:
		v.changed("agent.template", *f.Run.Template, c.Template, "Another template would have run, unless the task named this one itself.")
	}
}

// command is about the newest check of the task's pull request.
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

func (f facts) timeout(v *verdict, was, c Candidate, known bool) {
	switch limit := c.CheckTimeout.Microseconds(); {
	case f.CheckMicros == nil, f.Command == nil || *f.Command != c.CheckCommand:
		v.unknown("checks.timeout")
	case *f.CheckMicros > limit:
		v.changed("checks.timeout", (time.Duration(*f.CheckMicros) * time.Microsecond).String(), c.CheckTimeout.String(), "The check would have been cut off, and failed.")
	case !known || *f.CheckMicros >= was.CheckTimeout.Microseconds(): // it may have been cut off itself
		v.unknown("checks.timeout")
	}
}

// mode goes by what was done about the task's pull request: whether a person
// was asked, and whether the policy had it merged.
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

// merged is about what a merge does, of which nothing is known until there is
// one. Whoever merged by hand did not go by the policy.
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

// spending is about a limit. A run that was stopped might have cost more, and
// where a limit holds calls without a price are not made.
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
		v.changed(key, money.Dollars(spent), money.Dollars(*limit), fmt.Sprintf("The work would have been parked before it cost %s dollars.", money.Dollars(*limit)))
	case stopped:
		v.unknown(key)
	}
}
