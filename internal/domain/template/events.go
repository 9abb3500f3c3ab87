package template

import (
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the scope that a subscriber needs for the events of templates.
var audience = event.Audience(policy.ReadRunners)

// setData is the data of the event that a template was set.
type setData struct {
	Agent    string `json:"agent" doc:"the program that works"`
	Model    string `json:"model" doc:"the model it works with; empty: the agent's own choice"`
	Provider string `json:"provider" doc:"whose key is used; empty: the first of the account's keys that fits"`
}

// The events of a template, whose object is its name.
var (
	setEvent     = event.Declare[setData]("template.set", audience, "A template was created or replaced.")
	deletedEvent = event.Declare[event.None]("template.deleted", audience, "A template was deleted.")
)
