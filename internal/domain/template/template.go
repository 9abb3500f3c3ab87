// Package template keeps the agent templates of an account. A task names a
// template; the template says which coding agent carries the task out, with
// which model of which provider, how the agent is started and how long a run
// may take.
package template

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/llm"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
)

// The agents that are no separate programs: the one that this program carries,
// and any command.
const (
	Builtin = "builtin"
	Command = "command"
)

// Agent is what works on a task.
type Agent string

// Values lists all agents.
func (Agent) Values() []string {
	return []string{Builtin, "claude", "codex", "opencode", "gemini", "qwen", "goose", Command}
}

// API is the wire form that the agent builtin speaks.
type API string

// Values lists all forms.
func (API) Values() []string { return []string{"chat", "messages", "responses"} }

// Default is the template that every account has, set or not.
const Default = "default"

// maxTemplates is how many templates an account may have.
const maxTemplates = 200

// Template says how an agent is run. A field that the caller of template.set
// leaves out has its default.
type Template struct {
	_          struct{}                `doc:"How an agent is run."`
	Name       string                  `json:"name" example:"default" doc:"what tasks and policy files call it"`
	Agent      Agent                   `json:"agent" doc:"builtin and command come with every box; the others must be installed there"`
	Model      string                  `json:"model" example:"model-1" doc:"empty: the agent's own choice"`
	Provider   llm.Provider            `json:"provider" or:"" doc:"whose key is used; empty: the first of the account's keys that fits"`
	BaseURL    string                  `json:"base_url" example:"" doc:"of the providers compatible and azure: the key with this address is used"`
	Options    map[string]string       `json:"options" example:"{\"effort\":\"high\"}" doc:"settings of the agent, by name"`
	Command    []string                `json:"command" example:"[]" doc:"argv of the agent command"`
	Seconds    int64                   `json:"timeout" example:"3600" doc:"seconds a run may take"`
	API        API                     `json:"api" or:"" example:"chat" doc:"wire form that the agent builtin speaks; empty for the others"`
	Isolation  protocol.LeastIsolation `json:"isolation" example:"best" doc:"the least a box must offer; best is any level but none"`
	Challenger string                  `json:"challenger,omitempty" example:"bold" doc:"a template that gets a share of the work tasks that name this one; absent: none"`
	Share      int64                   `json:"share,omitzero" example:"20" doc:"of a hundred tasks, how many the challenger gets"`
	Lanes      *Lanes                  `json:"lanes,omitempty" doc:"what came of both; of template.get alone, once a task was split"`
	CreatedAt  *time.Time              `json:"created_at" doc:"null: never set, this is what every account begins with"`
	UpdatedAt  *time.Time              `json:"updated_at" doc:"when it was last set; null: never"`
}

// Defaults returns the template of that name with the default in every other
// field.
func Defaults(name string) Template {
	return Template{Name: name, Agent: Builtin, Options: map[string]string{}, Command: []string{}, Seconds: 3600, API: "chat",
		Isolation: "best"}
}

// Timeout is how long a run may take.
func (t Template) Timeout() time.Duration { return time.Duration(t.Seconds) * time.Second }

// APIs are the wire forms in which the template's agent can call a model, the
// preferred one first. The agent command has none: it need not call a model.
func (t Template) APIs() []llm.API {
	switch t.Agent {
	case Command:
		return nil
	case "claude":
		return []llm.API{llm.Messages}
	case "codex":
		return []llm.API{llm.Responses}
	case "gemini":
		return []llm.API{llm.Gemini}
	case Builtin:
		if string(t.API) != string(llm.Messages) {
			return []llm.API{llm.API(t.API), llm.Messages}
		}
		return []llm.API{llm.Messages}
	}
	return []llm.API{llm.Chat}
}

// Needs are the dependencies of Service.
type Needs struct {
	DB  *db.DB
	Hub *event.Hub
}

// Service answers for templates.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

var namePattern = lazy.New(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// check returns fault.Invalid if fields of the template contradict each other;
// the fault names the fields.
func (t Template) check() error {
	wrong := fault.New(fault.Invalid, "", "The request has invalid fields.")
	wrong.Fields = map[string][]string{}
	add := func(field, message string) { wrong.Fields[field] = append(wrong.Fields[field], message) }
	if !namePattern.MatchString(t.Name) {
		add("name", "must be 1 to 63 lower-case letters, digits, dots, hyphens or underscores, and begin with a letter or digit")
	}
	switch {
	case t.Agent == Command && (len(t.Command) == 0 || t.Command[0] == ""):
		add("command", "is required for the agent command")
	case t.Agent != Command && len(t.Command) > 0:
		add("command", "is for the agent command only")
	}
	if slices.ContainsFunc(t.Command, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		add("command", "must not hold a NUL character")
	}
	switch {
	case (t.Challenger == "") != (t.Share == 0):
		add("share", "goes with a challenger")
	case t.Challenger == t.Name:
		add("challenger", "must be another template")
	}
	if t.Agent != Builtin && t.API != "" {
		add("api", "is for the agent builtin only")
	}
	switch {
	case t.Provider.Addressed() && t.BaseURL == "":
		add("base_url", "is required for the provider "+string(t.Provider))
	case !t.Provider.Addressed() && t.BaseURL != "":
		add("base_url", "is for "+llm.WithAddress()+" only")
	case t.BaseURL != "":
		if u, err := url.Parse(t.BaseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "" {
			add("base_url", "must be an http or https address without user, query and fragment")
		}
	}
	if len(wrong.Fields) > 0 {
		return wrong
	}
	return nil
}
