package session

import (
	"context"
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/money"
	"yardmaster/internal/protocol"
)

// Candidate is a policy that a session is replayed under: what it would have
// decided. An empty text or nil decides nothing.
type Candidate struct {
	Template     string
	Isolation    string // the least that is accepted
	CheckCommand string
	CheckTimeout time.Duration
	MergeMode    string // ask, auto or never
	TaskMicros   *int64
	RunMicros    *int64
}

type replayIn struct {
	ID  string `json:"id"`
	YML string `json:"yml" maxLength:"65536" doc:"the candidate policy file"`
}

// PolicyReplay is what a candidate policy would have decided otherwise.
type PolicyReplay struct {
	SessionID string           `json:"session_id"`
	Same      bool             `json:"same" doc:"nothing would have been decided otherwise"`
	Diff      []PolicyDecision `json:"diff"`
	Unknown   []string         `json:"unknown" doc:"keys of the policy that the record of this session says nothing about"`
}

// PolicyDecision is one decision that would have changed.
type PolicyDecision struct {
	Key       string  `json:"key" doc:"of the policy file"`
	Recorded  *string `json:"recorded" doc:"what was"`
	Candidate *string `json:"candidate" doc:"what would have been"`
	Effect    string  `json:"effect"`
}

// replay holds a finished session against a policy. It changes nothing.
func (s *Service) replay(ctx context.Context, in replayIn) (out PolicyReplay, err error) {
	c, problems := s.Parse(in.YML)
	if len(problems) > 0 {
		bad := fault.Field("yml", "")
		bad.Fields["yml"] = problems
		return out, bad
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		if r.EndedAt == nil {
			return fault.Reason("session_running", "The session has not ended yet: there is nothing to replay.")
		}
		f, _, err := selectFacts.Maybe(tx, tx.Account, r.ID)
		if err != nil {
			return err
		}
		out = f.replay(c)
		out.SessionID = r.ID
		return nil
	})
	return out, err
}

// strength orders the levels of isolation; what is not known is the weakest.
var strength = map[string]int{"none": 0, "best": 1, "landlock": 2, "bubblewrap": 3}

// isolated is how strongly it was: a level that did not hold what its name
// promises is better than none, and no more.
func (f facts) isolated() int {
	rank := strength[*f.Isolation]
	if f.IsolationHolds == nil || !protocol.Keeps(*f.Isolation, f.IsolationHolds.V) {
		rank = min(rank, strength["best"])
	}
	return rank
}

// replay decides anew what the record of a session tells about.
func (f facts) replay(c Candidate) PolicyReplay {
	out := PolicyReplay{Diff: []PolicyDecision{}, Unknown: []string{}}
	changed := func(key string, was, would *string, effect string) {
		out.Diff = append(out.Diff, PolicyDecision{key, was, would, effect})
	}
	unknown := func(key string) { out.Unknown = append(out.Unknown, key) }

	switch {
	case f.Template == nil:
		unknown("agent.template")
	case *f.Template != c.Template:
		changed("agent.template", f.Template, &c.Template, "Another template would have run, unless the task named its own.")
	}
	switch {
	case f.Isolation == nil:
		unknown("agent.isolation")
	case f.isolated() < strength[c.Isolation]:
		changed("agent.isolation", f.Isolation, &c.Isolation, "The box that ran it would not have been given the task.")
	}
	switch {
	case f.Command == nil && c.CheckCommand == "":
	case f.PRID == nil:
		unknown("checks.command")
	case f.Command == nil:
		changed("checks.command", nil, &c.CheckCommand, "The pull request would have been checked.")
	case c.CheckCommand == "":
		changed("checks.command", f.Command, nil, "The pull request would not have been checked.")
	case *f.Command != c.CheckCommand:
		changed("checks.command", f.Command, &c.CheckCommand, "Another command would have checked the pull request.")
	case f.CheckMicros != nil && *f.CheckMicros > c.CheckTimeout.Microseconds():
		took, limit := (time.Duration(*f.CheckMicros) * time.Microsecond).String(), c.CheckTimeout.String()
		changed("checks.timeout", &took, &limit, "The check would have been cut off, and failed.")
	}
	switch asked := "ask"; {
	case f.PRID == nil:
		unknown("merge.mode")
	case f.Asked > 0 && c.MergeMode != "ask":
		effect := "The pull request would have been merged without asking."
		if c.MergeMode == "never" {
			effect = "The pull request would have been left to people."
		}
		changed("merge.mode", &asked, &c.MergeMode, effect)
	case f.Asked == 0 && f.MergedAt != nil && c.MergeMode != "auto":
		auto := "auto"
		changed("merge.mode", &auto, &c.MergeMode, "The pull request would have waited for a person.")
	}
	f.spending("budget.run_usd", c.RunMicros, f.CostMicros, changed)
	f.spending("budget.task_usd", c.TaskMicros, f.TaskCost, changed)
	out.Same = len(out.Diff) == 0
	return out
}

func (f facts) spending(key string, limit, cost *int64, changed func(string, *string, *string, string)) {
	if limit == nil || cost == nil || *cost <= *limit {
		return
	}
	changed(key, money.DollarsOrNone(cost), money.DollarsOrNone(limit),
		fmt.Sprintf("The work would have been parked before it cost %s dollars.", money.Dollars(*limit)))
}
