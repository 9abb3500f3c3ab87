package template

import (
	"context"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

const group = "Templates and prompt variables"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "template.list", Method: "GET", Path: "/v1/templates",
			Group: group, Rule: policy.Require(policy.ReadRunners), Paging: &op.Paging{Default: 25, Max: 100},
			Summary: "Every agent template of the account, by name",
			Doc:     "The one named default is always there; created_at is null while nobody has set it."}, s.list),
		op.New(op.Row{ID: "template.get", Method: "GET", Path: "/v1/templates/{name}", Group: group,
			Rule:    policy.Require(policy.ReadRunners),
			Summary: "One template",
			Doc:     "What runs that name it get. default answers its built-in values while nobody has set it."}, s.get),
		op.New(op.Row{ID: "template.set", Method: "PUT", Path: "/v1/templates/{name}", Group: group,
			Rule:    policy.Require(policy.WriteRunners),
			Refuses: []op.Refusal{{Status: 422, Slug: "too-many-templates"}},
			Summary: "Create or fully replace a template; what is left out gets its default",
			Doc: "What is left out gets its default, so send the whole template. Tasks that waited for a template of this name can be " +
				"claimed from then on; runs that go on keep what they began with. An account may have 200."}, s.set),
		op.New(op.Row{ID: "template.delete", Method: "DELETE", Path: "/v1/templates/{name}",
			Group: group, Rule: policy.Require(policy.WriteRunners),
			Summary: "Delete a template; the one named default goes back to what it was at first",
			Doc:     "Pending tasks that name it are held until one of its name is set again. Deleting what is not there answers deleted false."},
			s.delete),
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Template], error) {
	var out []Template
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		out, err = All(tx, tx.Account)
		return err
	})
	if err != nil {
		return op.Page[Template]{}, err
	}
	return op.Cut(in.PageIn, out, func(t Template) []string { return []string{t.Name} }), nil
}

type nameIn struct {
	Name string `json:"name" example:"default" doc:"name of the template"`
}

func (s *Service) get(ctx context.Context, in nameIn) (out Template, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		t, ok, err := ByName(tx, tx.Account, in.Name)
		if err == nil && !ok {
			err = fault.Missing("template")
		}
		if out = t; err == nil {
			out.Lanes, err = lanes(tx, in.Name)
		}
		return err
	})
	return out, err
}

type setIn struct {
	Name       string                  `json:"name" example:"careful" doc:"lower-case words with - or _ between them"`
	Agent      Agent                   `json:"agent,omitempty" doc:"the program that works; builtin unless given"`
	Model      string                  `json:"model,omitempty" maxLength:"200" example:"model-1" doc:"model to work with; left out: the agent's own choice"`
	Provider   llm.Provider            `json:"provider,omitempty" doc:"whose key is used; left out: the first of the account's keys that fits"`
	BaseURL    string                  `json:"base_url,omitempty" maxLength:"500" doc:"required for the providers compatible and azure"`
	Options    map[string]string       `json:"options,omitempty" maxItems:"64" maxLength:"4000" example:"{\"effort\":\"high\"}" doc:"settings of the agent, by name"`
	Command    []string                `json:"command,omitempty" maxItems:"100" maxLength:"4000" doc:"required for the agent command"`
	Timeout    int64                   `json:"timeout,omitempty" unit:"seconds" minimum:"10" maximum:"86400" doc:"seconds; default 3600"`
	API        API                     `json:"api,omitempty" doc:"for the agent builtin; default chat"`
	Isolation  protocol.LeastIsolation `json:"isolation,omitempty" doc:"default best: the best that the box has, and none only on a member's own box or where the policy file says so"`
	Challenger string                  `json:"challenger,omitempty" maxLength:"63" example:"bold" doc:"a template that is to get a share of the work tasks that name this one"`
	Share      int64                   `json:"share,omitempty" minimum:"1" maximum:"99" example:"20" doc:"of a hundred tasks, how many the challenger gets, by the hash of their id"`
}

// template fills in the defaults of what was left out.
func (in setIn) template() Template {
	t := Defaults(in.Name)
	t.Model, t.Provider, t.BaseURL = in.Model, in.Provider, strings.TrimRight(in.BaseURL, "/")
	if in.Agent != "" {
		t.Agent = in.Agent
	}
	if in.API != "" || t.Agent != Builtin {
		t.API = in.API
	}
	if in.Timeout != 0 {
		t.Seconds = in.Timeout
	}
	if in.Isolation != "" {
		t.Isolation = in.Isolation
	}
	if in.Options != nil {
		t.Options = in.Options
	}
	t.Command = append(t.Command, in.Command...)
	t.Challenger, t.Share = in.Challenger, in.Share
	return t
}

func (s *Service) set(ctx context.Context, in setIn) (out Template, err error) {
	t := in.template()
	if err := t.check(); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := t.challenged(tx); err != nil {
			return err
		}
		if _, err := put.Exec(tx, putArgs{
			AccountID: tx.Account, Name: t.Name, Body: db.JSON[Template]{V: t}, CreatedAt: tx.Now,
		}); err != nil {
			return err
		}
		if n, err := count.One(tx, tx.Account); err != nil {
			return err
		} else if n > maxTemplates {
			return fault.Newf(fault.Unprocessable, "too-many-templates", "An account may have %d templates.", maxTemplates)
		}
		r, err := byName.One(tx, tx.Account, t.Name)
		if err != nil {
			return err
		}
		out = r.template()
		s.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic("")) // tasks may have waited for it
		return setEvent.Record(tx, event.Subject{ID: t.Name}, setData{Agent: string(t.Agent), Model: t.Model, Provider: string(t.Provider)})
	})
	return out, err
}

// All lists the templates of an account, by name. Default is among them, set or
// not.
func All(tx *db.Tx, account string) ([]Template, error) {
	rows, err := all.All(tx, account)
	var out []Template
	for _, r := range rows {
		out = append(out, r.template())
	}
	if at, found := slices.BinarySearchFunc(out, Default,
		func(t Template, name string) int { return strings.Compare(t.Name, name) }); !found {
		out = slices.Insert(out, at, Defaults(Default))
	}
	return out, err
}

// SetModel sets the model of a template of tx.Account that has none yet, at
// baseURL of a provider whose keys have addresses. The caller records the event, with the
// change that this is a part of.
func SetModel(tx *db.Tx, t Template, of llm.Provider, baseURL, model string) error {
	t.Provider, t.BaseURL, t.Model = of, baseURL, model
	_, err := put.Exec(tx, putArgs{
		AccountID: tx.Account, Name: t.Name, Body: db.JSON[Template]{V: t}, CreatedAt: tx.Now,
	})
	return err
}

// DeletedTemplate is the answer of template.delete.
type DeletedTemplate struct {
	_       struct{} `doc:"What template.delete did." schema:"DeletedTemplate"`
	Name    string   `json:"name" example:"careful" doc:"name of the template"`
	Deleted bool     `json:"deleted" doc:"false: there was none"`
}

func (s *Service) delete(ctx context.Context, in nameIn) (out DeletedTemplate, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := remove.Exec(tx, tx.Account, in.Name)
		out = DeletedTemplate{Name: in.Name, Deleted: n > 0}
		if err != nil || n == 0 {
			return err
		}
		s.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic(""))
		return deletedEvent.Record(tx, event.Subject{ID: in.Name}, event.None{})
	})
	return out, err
}
