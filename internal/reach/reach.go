// Package reach decides what a run may begin outside of its own sandbox. Whatever runs
// there (an agent, a test script, a dependency) can write into the outbox of the run, so
// the agent's good will decides nothing here. Of is the one place of the decision: a
// table of the kind of the run, what it declares, where that leads to, and whose text the
// run was given.
package reach

import "slices"

// Verb is what a run declares or hands in that begins something elsewhere. Commits,
// reports, verdicts of checks and findings of reviews are no verbs: they can only reach
// the branch, the task or the pull request of the run.
type Verb string

// The verbs.
const (
	Ask      Verb = "ask"       // work that the run leaves to others
	FollowUp Verb = "follow_up" // the ask of an answer that came too late for the run
	Plan     Verb = "plan"      // the slices in the report of a scout
	Action   Verb = "action"    // something that a person is to do to a pull request
	Page     Verb = "page"      // what a page of the knowledge base is to say
	Blocker  Verb = "blocker"   // something that only a person can give
)

// Target is where a declaration leads to.
type Target string

// The targets.
const (
	Own   Target = "own"   // the repository of the run, with no more rights than the run has
	Wider Target = "wider" // the repository of the run, in a weaker sandbox than that of the run
	Other Target = "other" // another repository
)

// Text says whose text a run was given.
type Text string

// The texts.
const (
	Account   Text = "account"   // of the account's people and of its agents
	Strangers Text = "strangers" // also of people and systems that may not write to the repository
	Fork      Text = "fork"      // the checkout is that of another repository
)

// Outcome is what becomes of a declaration.
type Outcome string

// The outcomes. A question that is marked says that it comes from a run with text of
// strangers.
const (
	Done    Outcome = "done"
	Marked  Outcome = "marked"
	Waits   Outcome = "waits"
	Refused Outcome = "refused"
)

// The reasons why a declaration waits for a person: slugs.
const (
	OtherRepository = "other_repository"
	MoreRights      = "more_rights"
	StrangersText   = "strangers_text"
)

// Decision is an outcome. Reason says why a declaration waits; it is empty otherwise.
type Decision struct {
	Outcome Outcome
	Reason  string
}

// kinds are the kinds of tasks whose runs are known here. The program of a check is no
// agent.
var (
	kinds = []string{"work", "scout", "setup", "review", "babysit", "kb", "devops", check}
	check = "ci"
)

// Kinds lists the kinds of tasks.
func Kinds() []string { return slices.Clone(kinds) }

// Verbs lists all verbs.
func Verbs() []Verb { return []Verb{Ask, FollowUp, Plan, Action, Page, Blocker} }

// Targets lists all targets.
func Targets() []Target { return []Target{Own, Wider, Other} }

// Texts lists all texts.
func Texts() []Text { return []Text{Account, Strangers, Fork} }

// rule is a row of the table. A member that is empty fits everything.
type rule struct {
	kind   string
	verbs  []Verb
	target Target
	text   Text
	Decision
}

var (
	work      = []Verb{Ask, FollowUp, Plan}
	questions = []Verb{Action, Page, Blocker}
)

// table is read from the top; the first row that fits decides. A person has answered what a
// follow-up is made of, for a run that was about no fork when it asked: that is not lost.
var table = []rule{
	{verbs: []Verb{FollowUp}, text: Fork, Decision: Decision{Waits, StrangersText}},
	{text: Fork, Decision: Decision{Outcome: Refused}},
	{verbs: work, target: Other, Decision: Decision{Waits, OtherRepository}},
	{verbs: questions, target: Other, Decision: Decision{Outcome: Refused}},
	{verbs: work, text: Strangers, Decision: Decision{Waits, StrangersText}},
	{verbs: work, target: Wider, Decision: Decision{Waits, MoreRights}},
	{verbs: work, kind: check, Decision: Decision{Waits, MoreRights}},
	{verbs: work, target: Own, Decision: Decision{Outcome: Done}},
	{verbs: []Verb{Page}, kind: check, Decision: Decision{Outcome: Refused}},
	{verbs: questions, text: Strangers, Decision: Decision{Outcome: Marked}},
	{verbs: questions, Decision: Decision{Outcome: Done}},
}

// Of decides what becomes of a declaration of a run of a kind. What the table does not
// know is refused.
func Of(kind string, v Verb, to Target, given Text) Decision {
	known := slices.Contains(kinds, kind) && slices.Contains(Verbs(), v) && slices.Contains(Targets(), to) &&
		slices.Contains(Texts(), given)
	for _, r := range table {
		if known && (r.kind == "" || r.kind == kind) && (r.verbs == nil || slices.Contains(r.verbs, v)) &&
			(r.target == "" || r.target == to) && (r.text == "" || r.text == given) {
			return r.Decision
		}
	}
	return Decision{Outcome: Refused}
}

// Declares tells whether a run that was given a text declares anything at all.
func Declares(given Text) bool { return given != Fork }
