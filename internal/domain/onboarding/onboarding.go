// Package onboarding is the way from a fresh account to its first task: how
// far the account has come (the funnel that the dashboard resumes), and what
// stands between one credential and its first scout (the ladder of next
// steps). Whatever the platform can see is computed at each call; only what
// nobody but the caller can know is kept.
package onboarding

import (
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// Events that the caller witnesses, each with the step it finishes.
const (
	eventWelcomeSeen  = "welcome_seen"
	eventTourFinished = "tour_finished"
)

// witnessed are the events that the platform sees for itself, and takes from
// nobody.
var witnessed = map[string]bool{"key_set": true, "gh_app_installed": true, "yml_validated": true, "yml_invalid": true}

// OnboardingStep is one step of the funnel.
type OnboardingStep struct {
	Step    string `json:"step"`
	Done    bool   `json:"done"`
	Witness string `json:"witness" doc:"who sees it: caller or platform"`
}

// OnboardingState is how far an account has come.
type OnboardingState struct {
	State string           `json:"state" doc:"the first step that is not done; done after the last"`
	Steps []OnboardingStep `json:"steps"`
}

// funnel puts the facts of an account and the events its people reported in
// order.
func funnel(f facts, events []string) OnboardingState {
	said := map[string]bool{}
	for _, e := range events {
		said[e] = true
	}
	out := OnboardingState{State: "done", Steps: []OnboardingStep{
		{"welcome", said[eventWelcomeSeen], "caller"},
		{"repository", f.Repos > 0, "platform"},
		{"policy", f.ValidPolicies > 0, "platform"},
		{"model_key", f.Keys > 0, "platform"},
		{"box", f.Boxes > 0, "platform"},
		{"tour", said[eventTourFinished], "caller"},
	}}
	for _, s := range out.Steps {
		if !s.Done {
			out.State = s.Step
			break
		}
	}
	return out
}

// States of a rung.
const (
	rungDone    = "done"
	rungOpen    = "open"
	rungUnknown = "unknown"
)

// NextStep is one rung of the ladder.
type NextStep struct {
	Rung         string  `json:"rung"`
	State        string  `json:"state" doc:"done, open, or unknown: the caller may not see it"`
	Fact         any     `json:"fact" doc:"what decided; null when unknown"`
	ClearedBy    string  `json:"cleared_by" doc:"the capability that clears the rung"`
	MissingScope *string `json:"missing_scope" doc:"the scope behind which the rung is, when unknown"`
}

// NextSteps is what stands between a credential and its first scout. Every
// rung is there, in order.
type NextSteps struct {
	Ready bool          `json:"ready" doc:"no rung is open or unknown"`
	Next  *string       `json:"next" doc:"the first rung that is not done"`
	Rungs []NextStep    `json:"rungs"`
	Repo  *NextStepRepo `json:"repo" doc:"when one was asked for"`
}

// NextStepRepo is what the ladder adds for one repository.
type NextStepRepo struct {
	Repo      string `json:"repo"`
	Onboarded bool   `json:"onboarded" doc:"enabled, and no invalid policy file"`
	Secrets   *bool  `json:"secrets_reachable" doc:"whether stored secrets are where runs get them; null: none are stored"`
}

// rung is a question to the facts, behind a scope.
type rung struct {
	name, clears string
	scope        policy.Scope
	ask          func(a policy.Actor, f facts) (done bool, fact any)
}

var ladder = []rung{
	{"may_dispatch", "token.mint", "", func(a policy.Actor, _ facts) (bool, any) {
		ok := a.Scopes.Has(policy.Scopes(policy.WriteTasks))
		return ok, map[string]bool{"write:tasks": ok}
	}},
	{"capacity", "account.set_seats", policy.ReadAccount, func(_ policy.Actor, f facts) (bool, any) {
		return f.Devs > 0, map[string]int64{"ai_devs": f.Devs}
	}},
	{"repository", "project.update", policy.ReadRepos, func(_ policy.Actor, f facts) (bool, any) {
		return f.EnabledRepos > 0, map[string]int64{"enabled": f.EnabledRepos, "repositories": f.Repos}
	}},
	{"model_key", "billing.key_add", policy.ReadBilling, func(_ policy.Actor, f facts) (bool, any) {
		return f.Keys > 0, map[string]int64{"keys": f.Keys}
	}},
	{"box_online", "box.add", policy.ReadRunners, func(_ policy.Actor, f facts) (bool, any) {
		return f.BoxesOnline > 0, map[string]int64{"online": f.BoxesOnline, "enrolled": f.Boxes}
	}},
}

// climb asks every rung what the caller may know of it.
func climb(a policy.Actor, f facts) NextSteps {
	out := NextSteps{Ready: true, Rungs: make([]NextStep, len(ladder))}
	for i, r := range ladder {
		step := NextStep{Rung: r.name, ClearedBy: r.clears}
		if r.scope != "" && !a.Scopes.Has(policy.Scopes(r.scope)) {
			scope := string(r.scope)
			step.State, step.MissingScope = rungUnknown, &scope
		} else {
			var done bool
			done, step.Fact = r.ask(a, f)
			if step.State = rungOpen; done {
				step.State = rungDone
			}
		}
		out.Rungs[i] = step
		if step.State != rungDone && out.Next == nil {
			out.Ready, out.Next = false, &r.name
		}
	}
	return out
}

// Service answers for the way.
type Service struct {
	DB *db.DB
	// Devs is how many runs an account may have at once.
	Devs func(tx *db.Tx, account string) (int64, error)
}
