package prompt

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const (
	group         = "Templates and prompt variables"
	groupPersonal = "Personal settings"
)

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadRunners), policy.Require(policy.WriteRunners)
	mine := policy.Require(policy.SelfPrompt).OfUser()
	return []op.Op{
		op.New(op.Row{ID: "self.system_prompt_get", Method: "GET", Path: "/v1/me/system-prompt", Group: groupPersonal, Rule: mine,
			Summary: "The caller's own system prompt, which the runs of tasks they file get",
			Doc:     "prompt is null when none is set."}, s.mine),
		op.New(op.Row{ID: "self.system_prompt_set", Method: "PUT", Path: "/v1/me/system-prompt", Group: groupPersonal, Rule: mine,
			Summary: "Set the caller's own system prompt",
			Doc: "Runs of tasks that the caller files are told it besides the prompts of account, repository and template, from the next run " +
				"on. What looks like a secret is refused."}, s.setMine),
		op.New(op.Row{ID: "self.system_prompt_clear", Method: "DELETE", Path: "/v1/me/system-prompt", Group: groupPersonal, Rule: mine,
			Summary: "Clear the caller's own system prompt; again is no error",
			Doc:     "Clearing what is not set answers cleared false."}, s.clearMine),
		op.New(op.Row{ID: "config.list", Method: "GET", Path: "/v1/prompt-vars",
			Group: group, Rule: read, Paging: &op.Paging{Default: 25, Max: 100},
			Summary: "The prompt variables of the account, by scope, ref and key",
			Doc:     "All scopes unless scope is sent; ref narrows it to one repository or template."}, s.list),
		op.New(op.Row{ID: "config.get", Method: "GET", Path: "/v1/prompt-vars/{scope}/{key}", Group: group, Rule: read,
			Summary: "One prompt variable",
			Doc:     "404 when no such variable is set."}, s.get),
		op.New(op.Row{ID: "config.set", Method: "PUT", Path: "/v1/prompt-vars/{scope}/{key}", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}, {Status: 422, Slug: "too-many-variables"}},
			Summary: "Set a prompt variable; what looks like a secret is refused",
			Doc: "A variable stands in system prompts as {{key}} and is filled in when a run begins. Everybody in the account and every " +
				"agent can read it, so what looks like a secret is refused."}, s.set),
		op.New(op.Row{ID: "config.delete", Method: "DELETE", Path: "/v1/prompt-vars/{scope}/{key}", Group: group, Rule: write,
			Summary: "Delete a prompt variable; again is no error",
			Doc:     "Prompts that use it keep the placeholder as it is written."}, s.delete),
		op.New(op.Row{ID: "system_prompt.get", Method: "GET", Path: "/v1/system-prompts/{scope}", Group: group, Rule: read,
			Summary: "The system prompt of the account, of a repository or of a template",
			Doc:     "prompt is null when none is set for the place."}, s.prompt),
		op.New(op.Row{ID: "system_prompt.set", Method: "PUT", Path: "/v1/system-prompts/{scope}",
			Group: group, Rule: write, Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "Set a system prompt; an empty one clears it",
			Doc:     "Runs are told it from the next one on; an empty text clears it. What looks like a secret is refused."}, s.setPrompt),
	}
}

type listIn struct {
	op.PageIn
	Scope Scope  `json:"scope,omitempty" doc:"only variables of this scope; all unless given"`
	Ref   string `json:"ref,omitempty" maxLength:"100" doc:"id of a repository or name of a template"`
}

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Variable], err error) {
	after := in.After()
	if len(after) == 0 {
		after = []string{"", "", ""}
	}
	if len(after) != 3 {
		return out, fault.Field("cursor", "is not a cursor of this collection")
	}
	var rows []varRow
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err = listVars.All(tx, listArgs{tx.Account, string(in.Scope), in.Ref, after[0], after[1], after[2], in.Size()})
		return err
	})
	return op.ShowPage(in.PageIn, rows, func(r varRow) []string { return []string{string(r.Scope), r.Ref, r.Key} }, varRow.wire), err
}

type varIn struct {
	Scope Scope  `json:"scope" doc:"where the variable holds: the account, one repository or one template"`
	Key   string `json:"key" pattern:"^[A-Za-z_][A-Za-z0-9_.-]{0,63}$" example:"TEST_COMMAND" doc:"name of the variable"`
	Ref   string `json:"ref,omitempty" maxLength:"100" also:"query" doc:"id of the repository or name of the template; the account takes none"`
}

func (s *Service) get(ctx context.Context, in varIn) (out Variable, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if err := s.place(tx, in.Scope, in.Ref); err != nil {
			return err
		}
		r, ok, err := oneVar.Maybe(tx, oneVarArgs{AccountID: tx.Account, Scope: string(in.Scope), Ref: in.Ref, Key: in.Key})
		if err == nil && !ok {
			err = fault.Missing("prompt variable")
		}
		out = r.wire()
		return err
	})
	return out, err
}

type setVarIn struct {
	varIn
	Value string `json:"value" maxLength:"4000" example:"make test" doc:"plain text that everybody in the account and every agent may read"`
}

func (s *Service) set(ctx context.Context, in setVarIn) (out Variable, err error) {
	if err := plain("value", in.Value); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := s.place(tx, in.Scope, in.Ref); err != nil {
			return err
		}
		if _, err := putVar.Exec(tx, putVarArgs{
			AccountID: tx.Account, Scope: string(in.Scope), Ref: in.Ref, Key: in.Key, Value: in.Value, CreatedAt: tx.Now,
		}); err != nil {
			return err
		}
		if n, err := countVars.One(tx, tx.Account); err != nil {
			return err
		} else if n > maxVars {
			return fault.Newf(fault.Unprocessable, "too-many-variables", "An account may have %d prompt variables.", maxVars)
		}
		r, err := oneVar.One(tx, oneVarArgs{AccountID: tx.Account, Scope: string(in.Scope), Ref: in.Ref, Key: in.Key})
		if err != nil {
			return err
		}
		out = r.wire()
		return variableSetEvent.Record(tx, event.Subject{ID: in.Key, RepoID: repoOf(in.Scope, in.Ref)},
			variableSetData{Scope: in.Scope, Ref: out.Ref})
	})
	return out, err
}

// repoOf returns ref if scope is Repo, and "" otherwise.
func repoOf(scope Scope, ref string) string {
	if scope == Repo {
		return ref
	}
	return ""
}

// DeletedVariable is the answer of config.delete.
type DeletedVariable struct {
	_       struct{} `doc:"What config.delete did." schema:"DeletedVariable"`
	Key     string   `json:"key" example:"TEST_COMMAND" doc:"name of the variable"`
	Deleted bool     `json:"deleted" doc:"false: there was none"`
}

func (s *Service) delete(ctx context.Context, in varIn) (out DeletedVariable, err error) {
	if in.Scope == Account && in.Ref != "" {
		return out, fault.Field("ref", "is for repo and template only")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := dropVar.Exec(tx, dropVarArgs{AccountID: tx.Account, Scope: string(in.Scope), Ref: in.Ref, Key: in.Key})
		out = DeletedVariable{Key: in.Key, Deleted: n > 0}
		if err != nil || n == 0 {
			return err
		}
		return variableDeletedEvent.Record(tx, event.Subject{ID: in.Key, RepoID: repoOf(in.Scope, in.Ref)},
			variableDeletedData{Scope: in.Scope, Ref: in.Ref})
	})
	return out, err
}

type promptIn struct {
	Scope Scope  `json:"scope" doc:"whose prompt it is: the account's, a repository's or a template's"`
	Ref   string `json:"ref,omitempty" maxLength:"100" also:"query" doc:"id of the repository or name of the template; the account takes none"`
}

// read returns the system prompt of a scope and ref of tx.Account; its Prompt
// is nil if none is set.
func (s *Service) read(tx *db.Tx, in promptIn) (SystemPrompt, error) {
	out := SystemPrompt{Scope: in.Scope}
	if in.Ref != "" {
		out.Ref = &in.Ref
	}
	r, ok, err := onePrompt.Maybe(tx, tx.Account, string(in.Scope), in.Ref)
	if ok {
		out.Prompt, out.UpdatedAt, out.UpdatedBy = &r.Prompt, &r.UpdatedAt, &r.UpdatedBy
	}
	return out, err
}

func (s *Service) prompt(ctx context.Context, in promptIn) (out SystemPrompt, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if err := s.place(tx, in.Scope, in.Ref); err != nil {
			return err
		}
		out, err = s.read(tx, in)
		return err
	})
	return out, err
}

type setPromptIn struct {
	promptIn
	Prompt string `json:"prompt" maxLength:"8000" example:"Run {{TEST_COMMAND}} before you push." doc:"the whole text; {{name}} is a prompt variable"`
}

func (s *Service) setPrompt(ctx context.Context, in setPromptIn) (out SystemPrompt, err error) {
	text := strings.TrimSpace(in.Prompt)
	if err := plain("prompt", text); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := s.place(tx, in.Scope, in.Ref); err != nil {
			return err
		}
		if text == "" {
			_, err = dropPrompt.Exec(tx, tx.Account, string(in.Scope), in.Ref)
		} else {
			_, err = putPrompt.Exec(tx, putPromptArgs{
				AccountID: tx.Account, Scope: string(in.Scope), Ref: in.Ref, Prompt: text, UpdatedAt: tx.Now,
				UpdatedBy: policy.From(ctx).Label(),
			})
		}
		if err != nil {
			return err
		}
		if out, err = s.read(tx, in.promptIn); err != nil {
			return err
		}
		return promptSetEvent.Record(tx, event.Subject{ID: string(in.Scope), RepoID: repoOf(in.Scope, in.Ref)},
			promptSetData{Ref: out.Ref, Characters: len([]rune(text))})
	})
	return out, err
}

// own returns the system prompt of a person; its Prompt is nil if none is set.
func own(tx *db.Tx, userID string) (SystemPrompt, error) {
	out := SystemPrompt{Scope: "user"}
	r, ok, err := personal.Maybe(tx, userID)
	if ok {
		out.Prompt, out.UpdatedAt = &r.Prompt, &r.UpdatedAt
	}
	return out, err
}

func (s *Service) mine(ctx context.Context, _ op.None) (out SystemPrompt, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = own(tx, policy.From(ctx).UserID)
		return err
	})
	return out, err
}

type setMineIn struct {
	Prompt string `json:"prompt" minLength:"1" maxLength:"8000" example:"Explain each commit in one sentence." doc:"the whole text; {{name}} is a prompt variable"`
}

func (s *Service) setMine(ctx context.Context, in setMineIn) (out SystemPrompt, err error) {
	text := strings.TrimSpace(in.Prompt)
	if text == "" {
		return out, fault.Field("prompt", "must not be empty; clear it instead")
	}
	if err := plain("prompt", text); err != nil {
		return out, err
	}
	user := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := putPersonal.Exec(tx, user, text, tx.Now); err != nil {
			return err
		}
		if out, err = own(tx, user); err != nil {
			return err
		}
		return ownSetEvent.Record(tx, event.Subject{ID: user}, ownSetData{Characters: len([]rune(text))})
	})
	return out, err
}

// ClearedPrompt is the answer of self.system_prompt_clear.
type ClearedPrompt struct {
	_       struct{} `doc:"What self.system_prompt_clear did." schema:"ClearedPrompt"`
	Cleared bool     `json:"cleared" doc:"false: there was none"`
}

func (s *Service) clearMine(ctx context.Context, _ op.None) (out ClearedPrompt, err error) {
	user := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := dropPersonal.Exec(tx, user)
		out = ClearedPrompt{Cleared: n > 0}
		if err != nil || n == 0 {
			return err
		}
		return ownClearedEvent.Record(tx, event.Subject{ID: user}, event.None{})
	})
	return out, err
}
