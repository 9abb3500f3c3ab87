package budget

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Topic is the list of limits that clients follow.
var Topic = &event.Topic{Name: "budgets", Scope: policy.ReadBilling, Fixed: true}

// The data of events.
type (
	limitData struct {
		BeforeUSD *float64 `json:"before_usd" doc:"the limit before, in US dollars; null: there was none"`
		USD       *float64 `json:"usd" doc:"the limit, in US dollars; null: none"`
	}
	unsettledData struct {
		Micros int64 `json:"micros" doc:"micro-dollars that count as spent"`
	}
)

// The events of limits.
var (
	capSetEvent    = event.Declare[limitData]("billing.spend_cap_set", Topic, "Somebody set what the account may spend in a month.")
	memberSetEvent = event.Declare[limitData]("billing.member_cap_set", Topic, "Somebody set what a member's work may spend in a month.")
	repoSetEvent   = event.Declare[limitData]("project.budget_set", Topic, "Somebody set what the work on a repository may spend in a month.")
	keySetEvent    = event.Declare[limitData]("billing.key_budget_set", Topic, "Somebody set what calls over a key may cost in a month.")
	planSetEvent   = event.Declare[limitData]("plan.budget_set", event.Plans, "Somebody set what the tasks of a plan may spend together.")
	taskSetEvent   = event.Declare[limitData]("task.budget_set", event.Tasks, "Somebody set what a task may spend.")
	unsettledEvent = event.Declare[unsettledData]("budget.unsettled", Topic, "A node died, and what it had set aside counts as spent.")
)

// Stopped is the data of RunStopped.
type Stopped struct {
	RunID string
	Kind  string // SlugExhausted or SlugUnpriced
	Why   string // a sentence for people
}

// Freed is the data of TaskFreed and SessionFreed: an account, and the id of the task
// or session.
type Freed struct{ Account, ID string }

// Signals about work that a limit, or a model without a price, has stopped.
var (
	// RunStopped is sent with each call that is refused. Subscribers have the run stop
	// and hand in its work, and hold its task.
	RunStopped = event.DeclareSignal[Stopped]("budget.run_stopped", "A run may make no further call to a model.")
	// TaskFreed is sent for every task that was stopped, also if the task is not held
	// or is held for another reason.
	TaskFreed = event.DeclareSignal[Freed]("budget.task_freed", "A task may make calls to models again.")
	// SessionFreed is sent for a session without a task.
	SessionFreed = event.DeclareSignal[Freed]("budget.session_freed", "A session may make calls to models again.")
)
