package flow

import (
	"cmp"
	"maps"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/llm"
)

// Prefer changes a template to what a person likes best, if a key for it is there that the
// template's agent can use.
func (RunSetup) Prefer(tx *db.Tx, acct, name, person string, tpl *run.Template) (run.Preferred, error) {
	t, ok, err := template.ByName(tx, acct, name)
	if err != nil || !ok || t.Agent == template.Command {
		return run.Preferred{}, err
	}
	pref, err := modelkey.PrefOf(tx, acct, person)
	if err != nil {
		return run.Preferred{}, err
	}
	wish := wishOf(t)
	wish.Person = person
	wish, ok = pref.Of(wish)
	if !ok {
		return run.Preferred{}, nil
	}
	keys, err := modelkey.Candidates(tx, acct, wish)
	if err != nil || len(keys) == 0 {
		return run.Preferred{}, err
	}
	tpl.Model = cmp.Or(pref.Model, pref.Provider.DefaultModel())
	if t.Agent == template.Builtin && t.Options["api"] == "" {
		tpl.Options = maps.Clone(tpl.Options)
		tpl.Options["api"] = string(keys[0].API)
	}
	return run.Preferred{Provider: string(pref.Provider), Model: pref.Model}, nil
}

// preferred is what a run follows, in the words of package modelkey.
func preferred(p run.Preferred) modelkey.Pref {
	return modelkey.Pref{Provider: llm.Provider(p.Provider), Model: p.Model}
}

// workPreferred is what the newest run of the work of a pull request followed.
func workPreferred(tx *db.Tx, prID string) (modelkey.Pref, error) {
	work, ok, err := workOf(tx, prID)
	if err != nil || !ok {
		return modelkey.Pref{}, err
	}
	p, err := run.PreferredOf(tx, work.ID)
	return preferred(p), err
}
