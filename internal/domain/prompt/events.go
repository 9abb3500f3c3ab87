package prompt

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the scope that a subscriber needs for the events of prompts and
// their variables.
var audience = event.Audience(policy.ReadRunners)

// The data of events. None of them holds a text of a prompt or variable.
type (
	variableSetData struct {
		Scope Scope   `json:"scope" doc:"where the variable holds"`
		Ref   *string `json:"ref" doc:"id of the repository or name of the template; null: the account"`
	}
	variableDeletedData struct {
		Scope Scope  `json:"scope" doc:"where the variable held"`
		Ref   string `json:"ref" doc:"id of the repository or name of the template; empty: the account"`
	}
	promptSetData struct {
		Ref        *string `json:"ref" doc:"id of the repository or name of the template; null: the account"`
		Characters int     `json:"characters" doc:"how long the prompt is; 0: it was cleared"`
	}
	ownSetData struct {
		Characters int `json:"characters" doc:"how long the prompt is"`
	}
)

// The events of prompts. The object of an event is the variable's name, the
// scope of the system prompt, or the user of the personal prompt.
var (
	variableSetEvent     = event.Declare[variableSetData]("config.set", audience, "A prompt variable was set.")
	variableDeletedEvent = event.Declare[variableDeletedData]("config.deleted", audience, "A prompt variable was deleted.")
	promptSetEvent       = event.Declare[promptSetData]("system_prompt.set", audience, "A system prompt was set or cleared.")
	ownSetEvent          = event.Declare[ownSetData]("self.system_prompt_set", audience, "A person set a system prompt of their own.")
	ownClearedEvent      = event.Declare[event.None]("self.system_prompt_cleared", audience, "A person cleared their own system prompt.")
)
