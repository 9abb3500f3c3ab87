// Package template is how an agent is run: which agent, on which model, with
// which options. A task names a template; an account always has one called
// default, the built-in agent, until it says otherwise.
package template

import (
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// Default is the name of the template that every account has.
const Default = "default"

// Agents are the values of a template's agent. Builtin and command come with
// every box; the others have to be installed there.
var Agents = []string{"builtin", "claude", "codex", "opencode", "gemini", "qwen", "goose", "command"}

// AgentTemplate is a template as it is stored and shown.
type AgentTemplate struct {
	Name      string            `json:"name"`
	Agent     string            `json:"agent" enum:"builtin,claude,codex,opencode,gemini,qwen,goose,command"`
	Provider  string            `json:"provider" doc:"whose key; empty: the first of the account that fits"`
	Model     string            `json:"model" doc:"empty: the provider's or the agent's own default"`
	BaseURL   string            `json:"base_url" doc:"of a compatible provider"`
	API       string            `json:"api" enum:"chat,messages,responses" doc:"wire form the built-in agent speaks"`
	Options   map[string]string `json:"options"`
	Command   []string          `json:"command" doc:"argv of the agent command"`
	TimeoutS  int               `json:"timeout_s" doc:"seconds a run may take"`
	Isolation string            `json:"isolation" doc:"the least a box must offer; empty: what the repository's policy says"`
	CreatedAt *time.Time        `json:"created_at" doc:"null: never set"`
	UpdatedAt *time.Time        `json:"updated_at"`
}

// Timeout is TimeoutS as a duration.
func (t AgentTemplate) Timeout() time.Duration { return time.Duration(t.TimeoutS) * time.Second }

// fresh is a template with every field at its default.
func fresh(name string) AgentTemplate {
	return AgentTemplate{Name: name, Agent: "builtin", API: "chat", Options: map[string]string{}, Command: []string{}, TimeoutS: 3600}
}

// check refuses templates that could not run.
func (t AgentTemplate) check() error {
	switch {
	case t.Provider == "compatible" && t.BaseURL == "":
		return fault.Field("base_url", "is required for a compatible provider")
	case t.BaseURL != "" && !strings.HasPrefix(t.BaseURL, "https://") && !strings.HasPrefix(t.BaseURL, "http://"):
		return fault.Field("base_url", "must be an http or https address")
	case t.Agent == "command" && len(t.Command) == 0:
		return fault.Field("command", "is required for the agent command")
	case t.Agent != "command" && len(t.Command) > 0:
		return fault.Field("command", "goes with the agent command only")
	case slices.Contains(t.Command, ""):
		return fault.Field("command", "must not hold an empty word")
	}
	return nil
}

// Service answers for templates.
type Service struct{ DB *db.DB }
