// Package onboarding leads a new account to its first task. The funnel tells how far
// the account has come, so that the dashboard can resume there. The ladder tells
// which steps a credential still needs before its first scout. Each call computes
// what the platform can see; only events that the caller alone can know are stored.
package onboarding

import (
	"yardmaster/internal/db"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
)

// Events that only the caller can know. Each finishes a step.
const (
	eventWelcomeSeen  = "welcome_seen"
	eventTourFinished = "tour_finished"
)

// witnessed are the events that the platform sees for itself. It accepts them from no
// caller.
var witnessed = map[string]bool{"key_set": true, "gh_app_installed": true, "yml_validated": true, "yml_invalid": true}

// StepName is which step of the funnel.
type StepName string

// Values lists all steps, in order.
func (StepName) Values() []string {
	return []string{"welcome", "repository", "policy", "model_key", "box", "tour"}
}

// Step is one step of the funnel.
type Step struct {
	_       struct{} `doc:"One of the first steps of an account."`
	Step    StepName `json:"step" doc:"which step"`
	Done    bool     `json:"done" doc:"whether it is done"`
	Witness string   `json:"witness" enum:"caller,platform" doc:"who sees that it is done"`
}

// State tells how far an account has come.
type State struct {
	_     struct{} `doc:"How far an account has come."`
	State StepName `json:"state" or:"done" doc:"the first step that is not done; done after the last"`
	Steps []Step   `json:"steps" doc:"all of them, in order"`
}

// funnel returns the steps in order, with the first unfinished one as the state.
// events are those that callers reported.
func funnel(f facts, events []string) State {
	said := map[string]bool{}
	for _, e := range events {
		said[e] = true
	}
	out := State{State: "done", Steps: []Step{
		{Step: "welcome", Done: said[eventWelcomeSeen], Witness: "caller"},
		{Step: "repository", Done: f.Repos > 0, Witness: "platform"},
		{Step: "policy", Done: f.ValidPolicies > 0, Witness: "platform"},
		{Step: "model_key", Done: f.Keys > 0, Witness: "platform"},
		{Step: "box", Done: f.Boxes > 0, Witness: "platform"},
		{Step: "tour", Done: said[eventTourFinished], Witness: "caller"},
	}}
	for _, s := range out.Steps {
		if !s.Done {
			out.State = s.Step
			break
		}
	}
	return out
}

// RungState is whether a rung is reached.
type RungState string

// States of a rung.
const (
	rungDone    = "done"
	rungOpen    = "open"
	rungUnknown = "unknown"
)

// Values lists all states.
func (RungState) Values() []string { return []string{rungDone, rungOpen, rungUnknown} }

// NextStep is one rung of the ladder.
type NextStep struct {
	_            struct{}  `doc:"One thing that a first scout needs." schema:"NextStep"`
	Rung         string    `json:"rung" enum:"may_dispatch,capacity,repository,model_key,box_online" doc:"what it is"`
	State        RungState `json:"state" doc:"unknown: the credential may not see it"`
	Fact         any       `json:"fact" example:"{\"keys\":1}" doc:"what decided; null when unknown. Of the boxes, serving are those that take the caller's work, and may_claim those of them that would claim it now or once they have a free slot; the reason is the hold that a task would carry, of the repository and the keys too"`
	Title        string    `json:"title" example:"Add a model key" doc:"what is to be done, or was, in words"`
	ClearedBy    string    `json:"cleared_by" example:"billing.key_add" doc:"the capability that clears the rung"`
	Command      string    `json:"command" example:"yardmaster key add --provider anthropic" doc:"what does so at a command line; words in capitals are to be replaced"`
	MissingScope *string   `json:"missing_scope" example:"null" doc:"the scope behind which the rung is; null unless it is unknown"`
}

// NextSteps are all rungs, in order, for one credential.
type NextSteps struct {
	_     struct{}      `doc:"What stands between a credential and its first scout." schema:"NextSteps"`
	Ready bool          `json:"ready" doc:"no rung is open or unknown"`
	Next  *string       `json:"next" example:"null" doc:"the first rung that is not done; null: all are"`
	Begun *bool         `json:"begun" doc:"whether the account has any work, finished or not: a task, an ask or the pull request of a task. The task that sets a new repository up is none, its pull request is; null without read:tasks"`
	Rungs []NextStep    `json:"rungs" doc:"all of them, in order"`
	Repo  *NextStepRepo `json:"repo" example:"null" doc:"how the repository that was asked for stands; null without one"`
}

// NextStepRepo adds facts about one repository to the ladder.
type NextStepRepo struct {
	_            struct{} `doc:"How one repository stands." schema:"NextStepRepo"`
	Repo         string   `json:"repo" doc:"owner/name"`
	Onboarded    *bool    `json:"onboarded" doc:"enabled, and no invalid policy file; null: the caller may not see it"`
	Secrets      *bool    `json:"secrets_reachable" doc:"of the secrets stored in the account, whether any is where runs of this repository get it: in the account's vault or in the repository's. False: all are stored with other repositories. Null: none are stored, or the caller may not see it"`
	MissingScope *string  `json:"missing_scope" doc:"the scope behind which this is"`
}

// rung is a question about the facts that needs a scope.
type rung struct {
	name, title     string
	clears, command string
	scope           policy.Scope
	ask             func(a policy.Actor, f facts) (done bool, fact any)
	// or returns what to do, the capability that clears the rung, and its command, if they
	// depend on the facts; they replace title, clears and command.
	or func(f facts) (title, clears, command string)
}

var ladder = []rung{
	{name: "may_dispatch", title: "Get the right to file tasks", clears: "token.mint", command: "yardmaster login",
		ask: func(a policy.Actor, _ facts) (bool, any) {
			ok := a.Scopes.Has(policy.Scopes(policy.WriteTasks))
			return ok, map[string]bool{"write:tasks": ok}
		}},
	{name: "capacity", title: "Get seats for agents", clears: "account.set_seats",
		command: "yardmaster call account.set_seats id=ACCOUNT seats=1 confirm=true", scope: policy.ReadAccount, ask: func(_ policy.Actor, f facts) (bool, any) {
			return f.Devs > 0, map[string]int64{"ai_devs": f.Devs}
		}},
	{name: "repository", title: addRepository, scope: policy.ReadRepos,
		or: repositoryClears, ask: func(_ policy.Actor, f facts) (bool, any) {
			if f.repo != nil {
				return f.repo.Onboarded && f.Fleet.Repo == "", map[string]any{"repo": f.repo.name, "enabled": f.repo.Enabled,
					"policy_valid": f.repo.PolicyValid, "reason": reason(f.Fleet.Repo)}
			}
			return f.EnabledRepos > 0, map[string]int64{"enabled": f.EnabledRepos, "repositories": f.Repos}
		}},
	{name: "model_key", title: addKey, scope: policy.ReadBilling,
		or: keyClears, ask: func(_ policy.Actor, f facts) (bool, any) {
			return f.Keys > 0 && f.Fleet.Key == "", map[string]any{"keys": f.Keys, "reason": reason(f.Fleet.Key)}
		}},
	{name: "box_online", title: connectBox, scope: policy.ReadRunners,
		or: boxClears, ask: func(_ policy.Actor, f facts) (bool, any) {
			return f.Fleet.Hold == "", map[string]any{
				"serving":   f.Fleet.Serving,
				"online":    f.Fleet.Online,
				"may_claim": f.Fleet.MayClaim,
				"free":      f.Fleet.Free,
				"reason":    reason(f.Fleet.Hold),
			}
		}},
}

const addRepository, addKey, connectBox = "Add a repository", "Add a model key", "Connect a box"

// reason is the hold that a task would carry, nil for none.
func reason(hold string) any {
	if hold == "" {
		return nil
	}
	return hold
}

// keyClears is rung.or of the keys.
func keyClears(f facts) (title, clears, command string) {
	switch {
	case f.Keys > 0 && f.Fleet.Key == "no_credential":
		return "Add a key of a provider that the agent template can use", "billing.key_add", "yardmaster key add --provider PROVIDER"
	case f.Fleet.Key == "model_unavailable":
		return "Name a model in the agent template", "template.set", "yardmaster template set TEMPLATE"
	}
	return addKey, "billing.key_add", "yardmaster key add --provider anthropic"
}

// repositoryClears is rung.or of a repository. One that there is not is pushed: it is
// enabled then.
func repositoryClears(f facts) (title, clears, command string) {
	switch {
	case f.repo != nil && !f.repo.Enabled:
		return "Enable the repository " + f.repo.name, "project.update", "yardmaster repo enable " + f.repo.name
	case f.repo != nil && !f.repo.PolicyValid:
		return "Correct the policy file of " + f.repo.name, "project.policy_validate", "yardmaster repo policy " + f.repo.name
	case f.repo != nil && f.Fleet.Repo == "plan_does_not_cover":
		return "Have the private repository " + f.repo.name + " covered: apply as an open-source project, or ask an operator for another tier",
			"account.oss_verification_apply", "yardmaster account open-source apply"
	case f.repo != nil && f.Fleet.Repo != "":
		return "Give the App of this server the permissions it lacks at " + f.repo.name, "project.settings", "yardmaster repo view " + f.repo.name
	case f.Repos > 0 || f.repo != nil:
		title = addRepository
		if f.repo == nil && f.EnabledRepos == 0 {
			title = "Enable a repository"
		}
		return title, "project.update", "yardmaster repo enable OWNER/NAME"
	}
	return addRepository, "project.create", "yardmaster repo add PATH"
}

// boxClears is rung.or of the boxes.
func boxClears(f facts) (title, clears, command string) {
	switch f.Fleet.Hold {
	case "boxes_draining":
		return "Let a box take work again", "box.drain", "yardmaster box resume BOX"
	case "template_missing":
		return "Make the agent template again", "template.set", "yardmaster template set TEMPLATE"
	case "no_live_agent":
		return "Name an agent in the template that a person can talk to", "template.set", "yardmaster template set TEMPLATE"
	case "agent_not_installed", "isolation_unavailable":
		return "Give a box what agents need", "template.set", "yardmaster box agents"
	}
	return connectBox, "box.add", "yardmaster box join"
}

// climb answers every rung as far as the actor's scopes allow.
func climb(a policy.Actor, f facts) NextSteps {
	out := NextSteps{Ready: true, Rungs: make([]NextStep, len(ladder))}
	if a.Scopes.Has(policy.Scopes(policy.ReadTasks)) {
		out.Begun = &f.Begun
	}
	for i, r := range ladder {
		step := NextStep{Rung: r.name, Title: r.title, ClearedBy: r.clears, Command: r.command}
		if r.or != nil {
			step.Title, step.ClearedBy, step.Command = r.or(facts{}) // an actor without the scope learns nothing of the facts
		}
		if r.scope != "" && !a.Scopes.Has(policy.Scopes(r.scope)) {
			scope := string(r.scope)
			step.State, step.MissingScope = rungUnknown, &scope
		} else {
			var done bool
			done, step.Fact = r.ask(a, f)
			if r.or != nil {
				step.Title, step.ClearedBy, step.Command = r.or(f)
			}
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

// Needs are the dependencies of Service.
type Needs struct {
	DB    *db.DB
	Rungs Rungs
}

// Rungs asks other domains about tx.Account.
type Rungs interface {
	// Devs returns how many runs the account may have at once.
	Devs(tx *db.Tx) (int64, error)
	// Fleet tells whether a box would claim a task that createdBy files in a
	// repository. With an empty id the repository is one without demands.
	Fleet(tx *db.Tx, createdBy, repoID string) (Fleet, error)
	// Secrets tells whether any secret is stored, and whether runs of a
	// repository get any.
	Secrets(tx *db.Tx, repoID string) (stored, reachable bool, err error)
}

// Service implements the capabilities of onboarding.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Fleet counts the boxes of an account by how close they are to a claim.
type Fleet struct {
	Serving, Online, MayClaim, Free int
	Hold                            string // why no box may claim; empty if one may
	// Repo and Key are the holds that a task carries because of its repository, and because
	// of the keys of the account; empty: none.
	Repo, Key string
}

// askedRepo is the repository that the caller asks about.
type askedRepo struct {
	name string
	repoRow
}
