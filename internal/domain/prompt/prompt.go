// Package prompt keeps the texts that people put into the briefs of runs:
// system prompts, and the variables in them. The platform has a prompt (from
// the configuration), and so may the account, the repository, the template and
// the person who filed the task. A run gets all of these, in this order, the
// widest first, so that a later text is nearer to the work.
//
// A prompt names a variable as {{name}}. Its value is the template's if the
// template has one, else the repository's, else the account's. A name without a
// value stays as it is written. Values are filled in once: a variable in a
// value is not replaced.
//
// Everybody in the account, and every agent, can read prompts and variables. A
// text that looks like a secret is therefore refused.
package prompt

import (
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/needs"
	"yardmaster/internal/secretscan"
)

// Scope is where a variable or a prompt holds.
type Scope string

// Scopes of a variable and of a prompt.
const (
	Account  Scope = "account"
	Repo     Scope = "repo"
	Template Scope = "template"
)

// Values lists all scopes.
func (Scope) Values() []string {
	return []string{string(Account), string(Repo), string(Template)}
}

// The limits of texts, in characters, and of variables in an account.
const (
	maxPrompt = 8000
	maxValue  = 4000
	maxVars   = 500
)

// Variable is a plain text that prompts name.
type Variable struct {
	_         struct{}  `doc:"A named text that system prompts can use."`
	Scope     Scope     `json:"scope" doc:"where it holds"`
	Ref       *string   `json:"ref" example:"null" doc:"id of the repository or name of the template; null for the account"`
	Key       string    `json:"key" example:"TEST_COMMAND" doc:"its name; prompts write it as {{key}}"`
	Value     string    `json:"value" example:"make test" doc:"the text that is filled in"`
	CreatedAt time.Time `json:"created_at" doc:"when it was first set"`
	UpdatedAt time.Time `json:"updated_at" doc:"when it was last set"`
}

// SystemPrompt is a text that stands in every brief of its scope.
type SystemPrompt struct {
	_         struct{}   `doc:"What agents are told besides their task." schema:"SystemPrompt"`
	Scope     Scope      `json:"scope" or:"user" doc:"whose prompt it is; user is a person's own"`
	Ref       *string    `json:"ref" example:"null" doc:"id of the repository or name of the template; null for account and user"`
	Prompt    *string    `json:"prompt" example:"Run the tests before you push." doc:"null: none is set"`
	UpdatedAt *time.Time `json:"updated_at" doc:"when it was last set; null: none is set"`
	UpdatedBy *string    `json:"updated_by,omitempty" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who set it: user:<id> or pat:<id>; absent for a person's own, and when none is set"`
}

// Refs tells whether tx.Account has the repository or template that the ref of
// a scope names.
type Refs interface {
	HasRepo(tx *db.Tx, id string) (bool, error)
	HasTemplate(tx *db.Tx, name string) (bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB *db.DB
	// Platform is the prompt of the whole installation, empty for none.
	Platform string
	Refs     Refs
}

// Service answers for prompts and their variables.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// place checks that tx.Account has the place that scope and ref name. It
// returns fault.Invalid about the field ref if the two do not fit together, and
// fault.NotFound if the repository or template is unknown or another account's.
func (s *Service) place(tx *db.Tx, scope Scope, ref string) error {
	var ok bool
	var err error
	switch {
	case scope == Account && ref != "":
		return fault.Field("ref", "is for repo and template only")
	case scope == Account:
		return nil
	case ref == "":
		return fault.Field("ref", "is required for "+string(scope))
	case scope == Repo:
		ok, err = s.Refs.HasRepo(tx, ref)
	default:
		ok, err = s.Refs.HasTemplate(tx, ref)
	}
	if err == nil && !ok {
		err = fault.Missing(map[Scope]string{Repo: "repository", Template: "template"}[scope])
	}
	return err
}

// plain returns fault.Invalid about the field if the text looks like a secret.
func plain(field, text string) error {
	if secretscan.Found(text) {
		return fault.Field(field, "looks like a secret; a secret belongs under /v1/secrets or /v1/repos/{owner}/{repo}/secrets")
	}
	return nil
}

var variable = lazy.New(`\{\{ ?([A-Za-z_][A-Za-z0-9_.-]{0,63}) ?\}\}`)

// fill replaces the variables of a text by their values.
func fill(text string, vars map[string]string) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		if v, ok := vars[strings.Trim(name, "{} ")]; ok {
			return v
		}
		return name
	})
}

// For returns the prompts of a run, as paragraphs in the order of the package
// comment, with their variables filled in and without empty ones. The
// repository, the template (by name) and the person who wanted the work (empty
// for none) are of tx.Account. Further texts follow in the order given.
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

// Check returns an error if a text cannot be a prompt. It is for the
// configuration.
func Check(text string) error {
	if n := len([]rune(text)); n > maxPrompt {
		return fmt.Errorf("the system prompt has %d characters, more than %d", n, maxPrompt)
	}
	if secretscan.Found(text) {
		return fmt.Errorf("the system prompt holds what looks like a secret")
	}
	return nil
}
