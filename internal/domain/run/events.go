package run

import (
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
)

// The data of events.
type (
	endedData struct {
		Attempt     int64   `json:"attempt" doc:"which try of the task it was, from 1"`
		BoxID       string  `json:"box_id" doc:"the box it ran on"`
		FailureKind *string `json:"failure_kind" doc:"slug of what went wrong; null when nothing did"`
		Outcome     string  `json:"outcome" doc:"succeeded, failed, interrupted or lost"`
		TaskID      string  `json:"task_id" doc:"the task that it tried"`
	}
	secretsGivenData struct {
		BoxID string    `json:"box_id" doc:"the box it runs on"`
		Names []string  `json:"names" doc:"names of the secrets"`
		Right *BoxRight `json:"box_right" doc:"by what right that box has the run"`
	}
)

// The events of a run. The session holds the run's conversation.
var (
	endedEvent        = event.Declare[endedData]("run.ended", event.Sessions, "A run ended.")
	secretsGivenEvent = event.Declare[secretsGivenData]("run.secrets_given", event.Sessions, "The box of a run was given its secrets.")
)

// Declaration is a declaration of the agent of a live run: a protocol.AskFiled, a
// protocol.ActionProposed, a protocol.PageProposed or a protocol.BlockerDeclared.
type Declaration[T any] struct {
	Task     *task.Row // locked
	Run      *Row
	Declared T
}

// The signals of declarations are sent in the transaction that stores the
// events of the box, once for each declaration. If a subscriber returns a fault
// before it writes anything, the declaration has no effect and its event is
// stored. After any other error the box sends the events again.
var (
	AskFiled        = event.DeclareSignal[Declaration[protocol.AskFiled]]("run.ask_filed", "An agent filed an ask.")
	ActionProposed  = event.DeclareSignal[Declaration[protocol.ActionProposed]]("run.action_proposed", "An agent asks a person to do something to a pull request.")
	PageProposed    = event.DeclareSignal[Declaration[protocol.PageProposed]]("run.page_proposed", "An agent proposes a text for the knowledge base.")
	BlockerDeclared = event.DeclareSignal[Declaration[protocol.BlockerDeclared]]("run.blocker_declared", "An agent declared a blocker.")
)

// Command is a command for a box.
type Command struct {
	BoxID   string
	Command protocol.Command
}

// CommandQueued is sent when the box of a run is to get a command. A fault of a
// subscriber undoes the change.
var CommandQueued = event.DeclareSignal[Command]("run.command_owed", "The box of a run is owed a command.")

// Blame names a box for whose fault a run failed, and the fault.
type Blame struct{ BoxID, Why string }

// BoxBlamed is sent when a run has failed for a fault of its box, which gets no
// more work until it says that it is fit. The box is locked.
var BoxBlamed = event.DeclareSignal[Blame]("run.box_blamed", "A run failed for a fault of its box.")
