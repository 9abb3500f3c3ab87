package template

import (
	"cmp"
	"context"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

const group = "Templates and prompt variables"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "template.list", Method: "GET", Path: "/v1/templates", Group: group, Rule: policy.Require(policy.ReadRunners), Paging: &op.Paging{Default: 50, Max: 100},
			Summary: "The account's agent templates, by name"}, s.list),
		op.New(op.Row{ID: "template.get", Method: "GET", Path: "/v1/templates/{name}", Group: group, Rule: policy.Require(policy.ReadRunners),
			Summary: "One agent template"}, s.get),
		op.New(op.Row{ID: "template.set", Method: "PUT", Path: "/v1/templates/{name}", Group: group, Rule: policy.Require(policy.WriteRunners),
			Summary: "Create or fully replace a template; a field left out takes its default"}, s.set),
		op.New(op.Row{ID: "template.delete", Method: "DELETE", Path: "/v1/templates/{name}", Group: group, Rule: policy.Require(policy.WriteRunners),
			Summary: "Delete a template; one that is not there is no error"}, s.delete),
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[AgentTemplate], error) {
	var out []AgentTemplate
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if out, err = list(tx, in.PageIn); err != nil {
			return err
		}
		return withDefault(tx, in.PageIn, &out)
	})
	return op.NewPage(in.PageIn, out, func(t AgentTemplate) []string { return []string{t.Name} }), err
}

// withDefault puts the default template in its place on the page, if the
// account has not set its own.
func withDefault(tx *db.Tx, p op.PageIn, page *[]AgentTemplate) error {
	if after := p.After(); len(after) == 1 && after[0] >= Default {
		return nil
	}
	_, set, err := byName.Maybe(tx, tx.Account, Default)
	if err != nil || set {
		return err
	}
	at, _ := slices.BinarySearchFunc(*page, Default, func(t AgentTemplate, name string) int { return cmp.Compare(t.Name, name) })
	if at == p.Size() {
		return nil // it belongs on a later page
	}
	*page = slices.Insert(*page, at, fresh(Default))
	if len(*page) > p.Size() {
		*page = (*page)[:p.Size()]
	}
	return nil
}

type nameIn struct {
	Name string `json:"name"`
}

func (s *Service) get(ctx context.Context, in nameIn) (AgentTemplate, error) {
	var t AgentTemplate
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		var err error
		if t, ok, err = ByName(tx, tx.Account, in.Name); err == nil && !ok {
			err = fault.Missing("template")
		}
		return err
	})
	return t, err
}

type setIn struct {
	Name      string            `json:"name" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$"`
	Agent     string            `json:"agent,omitempty" enum:"builtin,claude,codex,opencode,gemini,qwen,goose,command" default:"builtin"`
	Provider  string            `json:"provider,omitempty" enum:"anthropic,openai,google,openrouter,compatible,scripted"`
	Model     string            `json:"model,omitempty" maxLength:"200"`
	BaseURL   string            `json:"base_url,omitempty" maxLength:"500"`
	API       string            `json:"api,omitempty" enum:"chat,messages,responses" default:"chat"`
	Options   map[string]string `json:"options,omitempty" maxItems:"50" maxLength:"2000"`
	Command   []string          `json:"command,omitempty" maxItems:"100" maxLength:"4000"`
	TimeoutS  int               `json:"timeout_s,omitempty" minimum:"10" maximum:"86400" default:"3600"`
	Isolation string            `json:"isolation,omitempty" enum:"none,landlock,bubblewrap"`
}

func (s *Service) set(ctx context.Context, in setIn) (AgentTemplate, error) {
	t := fresh(in.Name)
	t.Agent, t.API, t.TimeoutS = cmp.Or(in.Agent, t.Agent), cmp.Or(in.API, t.API), cmp.Or(in.TimeoutS, t.TimeoutS)
	t.Provider, t.Model, t.BaseURL, t.Isolation = in.Provider, in.Model, in.BaseURL, in.Isolation
	if in.Options != nil {
		t.Options = in.Options
	}
	if in.Command != nil {
		t.Command = in.Command
	}
	if err := t.check(); err != nil {
		return AgentTemplate{}, err
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := upsert.Exec(tx, tx.Account, in.Name, db.JSON[AgentTemplate]{V: t}, tx.Micros()); err != nil {
			return err
		}
		r, err := byName.One(tx, tx.Account, in.Name)
		if err != nil {
			return err
		}
		t = r.template()
		return event.Record(tx, event.Change{Kind: "template.set", Object: in.Name, Data: map[string]string{"agent": t.Agent, "model": t.Model}})
	})
	return t, err
}

// TemplateDeleted tells whether there was anything to delete.
type TemplateDeleted struct {
	Deleted bool `json:"deleted"`
}

func (s *Service) delete(ctx context.Context, in nameIn) (out TemplateDeleted, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := remove.Exec(tx, tx.Account, in.Name)
		if err != nil || n == 0 {
			return err
		}
		out.Deleted = true
		return event.Record(tx, event.Change{Kind: "template.deleted", Object: in.Name})
	})
	return out, err
}
