package flow

import (
	"cmp"
	"maps"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/llm"
)

// TaskTemplates implements task.Templates.
type TaskTemplates struct{}

// Exists tells whether an account has a template of the name.
func (TaskTemplates) Exists(tx *db.Tx, acct, name string) (bool, error) {
	_, ok, err := template.ByName(tx, acct, name)
	return ok, err
}

// TemplateLanes implements task.Lanes.
type TemplateLanes struct{}

// Split answers the template of a new task of tx.Account that names one.
func (TemplateLanes) Split(tx *db.Tx, name, taskID string) (string, error) {
	return template.Split(tx, name, taskID)
}

// wishOf is what the calls of a template's agent need of a key.
func wishOf(t template.Template) modelkey.Wish {
	return modelkey.Wish{Provider: t.Provider, BaseURL: t.BaseURL, Model: t.Model, APIs: t.APIs()}
}

// first is the best of candidates, without a key if there is none.
func first(all []modelkey.Candidate) (c modelkey.Candidate) {
	if len(all) > 0 {
		c = all[0]
	}
	return c
}

// missingKey says which keys would do.
func missingKey(t template.Template) string {
	switch {
	case t.BaseURL != "":
		return "of the provider compatible for " + t.BaseURL
	case t.Provider != "":
		return "of the provider " + string(t.Provider)
	}
	var speak []string
	for _, p := range llm.Providers() {
		for _, api := range t.APIs() {
			if !p.Local() && p.Speaks(api) {
				speak = append(speak, string(p))
				break
			}
		}
	}
	return "of a provider that its agent " + string(t.Agent) + " can use: " + strings.Join(speak, ", ")
}

// Template is how the agent of an account's template is run. What the template
// leaves open follows from the first key that fits, of the account or of the person that
// the run is for alone, or that others have lent to the repository. The model is empty
// when nothing names one; QueueTemplates.Need holds such a task back.
func (RunSetup) Template(tx *db.Tx, acct, repoID, name, person string) (run.Template, bool, error) {
	t, ok, err := template.ByName(tx, acct, name)
	if err != nil || !ok {
		return run.Template{}, ok, err
	}
	out := run.Template{
		Agent: string(t.Agent), Model: t.Model, Options: map[string]string{}, Command: t.Command, Timeout: t.Timeout(),
		Isolation: string(t.Isolation),
	}
	maps.Copy(out.Options, t.Options)
	if t.Agent == template.Command {
		return out, true, nil
	}
	wish := wishOf(t)
	wish.Person, wish.Repo = person, repoID
	all, err := modelkey.Candidates(tx, acct, wish)
	if err != nil {
		return run.Template{}, false, err
	}
	key := first(all)
	out.Model = cmp.Or(key.ModelOf(out.Model), key.Provider.DefaultModel())
	if t.Agent == template.Builtin && out.Options["api"] == "" { // the others speak their one API
		out.Options["api"] = cmp.Or(string(key.API), string(t.API))
	}
	return out, true, nil
}

// KeyTemplates names models in templates. It is modelkey.Templates; the transcripts
// of package modelkey show it.
type KeyTemplates struct{}

// Adopt names a model in the templates of tx.Account that use a new key and name
// none, and answers which these are.
func (KeyTemplates) Adopt(tx *db.Tx, keyID string, of llm.Provider, baseURL, model string) ([]string, error) {
	all, err := template.All(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	named := []string{}
	for _, t := range all {
		if t.Model != "" || t.Agent == template.Command {
			continue
		}
		keys, err := modelkey.Candidates(tx, tx.Account, wishOf(t))
		if err != nil {
			return nil, err
		}
		if first(keys).ID != keyID {
			continue // it has a better one
		}
		if err := template.SetModel(tx, t, of, baseURL, model); err != nil {
			return nil, err
		}
		named = append(named, t.Name)
	}
	return named, nil
}
