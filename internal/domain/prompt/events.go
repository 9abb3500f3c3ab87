package prompt

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is who is told of prompts and their variables.
var audience = event.Audience(policy.ReadRunners)

// The data of events. None holds a text.
type (
	variableSetData struct {
		Scope string  `json:"scope" enum:"account,repo,template" doc:"where the variable holds"`
		Ref   *string `json:"ref" doc:"id of the repository or name of the template; null: the account"`
	}
	variableDeletedData struct {
		Scope string `json:"scope" enum:"account,repo,template" doc:"where the variable held"`
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

// The events of prompts. The object of one about a variable is its name, of one
// about a system prompt its scope, of a personal one the user.
var (
	variableSetEvent     = event.Declare[variableSetData]("config.set", audience, "A prompt variable was set.")
	variableDeletedEvent = event.Declare[variableDeletedData]("config.deleted", audience, "A prompt variable was deleted.")
	promptSetEvent       = event.Declare[promptSetData]("system_prompt.set", audience, "A system prompt was set or cleared.")
	ownSetEvent          = event.Declare[ownSetData]("self.system_prompt_set", audience, "A person set a system prompt of their own.")
	ownClearedEvent      = event.Declare[event.None]("self.system_prompt_cleared", audience, "A person cleared their own system prompt.")
)
