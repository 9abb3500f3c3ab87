// Package prompt is what people put into the briefs of runs: system prompts,
// and the variables in them. There is a prompt of the platform (from the
// configuration), of the account, of the repository, of the template and of the
// person who filed the task; a run gets all there are, in this order, the
// widest first, so that what comes later is nearer to the work.
//
// {{name}} in a prompt is the variable of that name: the template's if it has
// one, else the repository's, else the account's. What has no value stays as it
// is written. Values are put in once: they hold no variables themselves.
//
// Everybody in the account, and every agent, can read all of it. So what looks
// like a secret is refused.
package prompt

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
	"yardmaster/internal/secretscan"
)

// Scopes of a variable and of a prompt.
const (
	Account  = "account"
	Repo     = "repo"
	Template = "template"
)

// Limits, in characters.
const (
	maxPrompt = 8000
	maxValue  = 4000
	maxVars   = 500
)

// Variable is a value that prompts name. It is plain text.
type Variable struct {
	_         struct{}  `doc:"A named text that system prompts can use."`
	Scope     string    `json:"scope" enum:"account,repo,template" doc:"where it holds"`
	Ref       *string   `json:"ref" example:"null" doc:"id of the repository or name of the template; null for the account"`
	Key       string    `json:"key" example:"TEST_COMMAND" doc:"its name; prompts write it as {{key}}"`
	Value     string    `json:"value" example:"make test" doc:"the text that is filled in"`
	CreatedAt time.Time `json:"created_at" doc:"when it was first set"`
	UpdatedAt time.Time `json:"updated_at" doc:"when it was last set"`
}

// SystemPrompt is what every brief in its scope says.
type SystemPrompt struct {
	_         struct{}   `doc:"What agents are told besides their task." schema:"SystemPrompt"`
	Scope     string     `json:"scope" enum:"account,repo,template,user" doc:"whose prompt it is; user is a person's own"`
	Ref       *string    `json:"ref" example:"null" doc:"id of the repository or name of the template; null for account and user"`
	Prompt    *string    `json:"prompt" example:"Run the tests before you push." doc:"null: none is set"`
	UpdatedAt *time.Time `json:"updated_at" doc:"when it was last set; null: none is set"`
	UpdatedBy *string    `json:"updated_by,omitempty" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who set it: user:<id> or pat:<id>; absent for a person's own, and when none is set"`
}

// Refs tells whether tx.Account has what the ref of a scope names.
type Refs interface {
	HasRepo(tx *db.Tx, id string) (bool, error)
	HasTemplate(tx *db.Tx, name string) (bool, error)
}

// Needs are what prompts are made of.
type Needs struct {
	DB *db.DB
	// Platform is the prompt of the whole installation, empty for none.
	Platform string
	Refs     Refs
}

// Service answers for prompts and their variables.
type Service struct{ Needs }

// New makes the service. It panics if something is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// place finds what a scope and a ref name. A ref of another account is unknown.
func (s *Service) place(tx *db.Tx, scope, ref string) error {
	var ok bool
	var err error
	switch {
	case scope == Account && ref != "":
		return fault.Field("ref", "is for repo and template only")
	case scope == Account:
		return nil
	case ref == "":
		return fault.Field("ref", "is required for "+scope)
	case scope == Repo:
		ok, err = s.Refs.HasRepo(tx, ref)
	default:
		ok, err = s.Refs.HasTemplate(tx, ref)
	}
	if err == nil && !ok {
		err = fault.Missing(map[string]string{Repo: "repository", Template: "template"}[scope])
	}
	return err
}

// plain refuses what does not belong into plain text.
func plain(field, text string) error {
	if secretscan.Found(text) {
		return fault.Field(field, "looks like a secret; a secret belongs under /v1/secrets or /v1/repos/{owner}/{repo}/secrets")
	}
	return nil
}

var variable = regexp.MustCompile(`\{\{ ?([A-Za-z_][A-Za-z0-9_.-]{0,63}) ?\}\}`)

// fill puts variables into a text.
func fill(text string, vars map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		if v, ok := vars[strings.Trim(name, "{} ")]; ok {
			return v
		}
		return name
	})
}

// For is what a run gets: of a repository, of a template by its name, of the
// person who wanted the work (empty for none), all of tx.Account. The result is
// a list of paragraphs in the documented order, empty ones left out.
func (s *Service) For(tx *db.Tx, repoID, template, userID string, further ...string) ([]string, error) {
	vars := map[string]string{}
	rows, err := varsFor.All(tx, tx.Account, repoID, template) // the widest first
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		vars[r.Key] = r.Value
	}
	texts := []string{s.Platform}
	prompts, err := promptsFor.All(tx, tx.Account, repoID, template)
	if err != nil {
		return nil, err
	}
	texts = append(texts, prompts...)
	if userID != "" {
		own, _, err := personal.Maybe(tx, userID)
		if err != nil {
			return nil, err
		}
		texts = append(texts, own.Prompt)
	}
	out := []string{}
	for _, text := range append(texts, further...) {
		if text = strings.TrimSpace(fill(text, vars)); text != "" {
			out = append(out, text)
		}
	}
	return out, nil
}

// Check tells whether a text may be a prompt, for the configuration.
func Check(text string) error {
	if n := len([]rune(text)); n > maxPrompt {
		return fmt.Errorf("the system prompt has %d characters, more than %d", n, maxPrompt)
	}
	if secretscan.Found(text) {
		return fmt.Errorf("the system prompt holds what looks like a secret")
	}
	return nil
}
