package flow

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/llm"
	"yardmaster/internal/proof/seed"
)

// TestPreferenceDecidesWhatATemplateLeavesOpen holds what a run is told that a person asked
// for who likes a model of anthropic best, the account having keys of anthropic and of none else.
func TestPreferenceDecidesWhatATemplateLeavesOpen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		if _, err := seed.AddKey.Exec(tx, "shared", "acme", "ok"); err != nil {
			t.Fatal(err)
		}
		own := llm.Anthropic.DefaultModel()
		none := run.Preferred{}
		for _, x := range []struct {
			name, template, provider, model string
			person                          string
			want                            run.Preferred
			told, api                       string
		}{
			{"a template that leaves all open", `{"agent":"builtin","api":"chat"}`, "anthropic", "best", "ann",
				run.Preferred{Provider: "anthropic", Model: "best"}, "best", "messages"},
			{"no model", `{"agent":"claude"}`, "anthropic", "", "ann", run.Preferred{Provider: "anthropic"}, own, ""},
			{"a template with a model", `{"agent":"claude","model":"m"}`, "anthropic", "best", "ann", none, "as it is", ""},
			{"a template with another provider", `{"agent":"builtin","provider":"openai"}`, "anthropic", "best", "ann", run.Preferred{},
				"as it is", ""},
			{"an agent that cannot", `{"agent":"codex"}`, "anthropic", "best", "ann", none, "as it is", ""},
			{"a program", `{"agent":"command","command":["true"]}`, "anthropic", "best", "ann", none, "as it is", ""},
			{"no key", `{"agent":"builtin","api":"chat"}`, "openai", "best", "ann", none, "as it is", ""},
			{"an address that nobody has", `{"agent":"builtin","api":"chat"}`, "compatible", "best", "ann", none, "as it is", ""},
			{"somebody else", `{"agent":"claude"}`, "anthropic", "best", "olga", none, "as it is", ""},
		} {
			if _, err := seed.PutTemplate.Exec(tx, "acme", "t", x.template); err != nil {
				t.Fatal(err)
			}
			of := seed.PrefArgs{AccountID: "acme", UserID: "ann", Provider: x.provider, Model: x.model}
			if _, err := seed.PutPref.Exec(tx, of); err != nil {
				t.Fatal(err)
			}
			tpl := run.Template{Model: "as it is", Options: map[string]string{}}
			got, err := RunSetup{}.Prefer(tx, "acme", "t", x.person, &tpl)
			if err != nil || got != x.want || tpl.Model != x.told || tpl.Options["api"] != x.api {
				t.Errorf("%s: %+v, %+v, %v", x.name, got, tpl, err)
			}
		}
	})
}

// TestReviewerIsAnotherThanTheModelThatIsLiked: work that was done with what its person likes
// best is reviewed by a template of another model than that.
func TestReviewerIsAnotherThanTheModelThatIsLiked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		if _, err := seed.AddKey.Exec(tx, "shared", "acme", "ok"); err != nil {
			t.Fatal(err)
		}
		for name, body := range map[string]string{
			"default": `{"agent":"claude","provider":"anthropic","model":"one"}`,
			"second":  `{"agent":"claude","provider":"anthropic","model":"two"}`,
		} {
			if _, err := seed.PutTemplate.Exec(tx, "acme", name, body); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := seed.PutTemplate.Exec(tx, "acme", "open", `{"agent":"claude"}`); err != nil {
			t.Fatal(err)
		}
		open, _, err := template.ByName(tx, "acme", "open")
		if err != nil {
			t.Fatal(err)
		}
		for liked, want := range map[modelkey.Pref]string{
			{}: "default", {Provider: llm.Anthropic, Model: "one"}: "open", {Provider: llm.Anthropic, Model: "two"}: "default",
		} {
			if got, err := otherModel(tx, open, liked); err != nil || got != want {
				t.Errorf("for %+v: %s, %v, want %s", liked, got, err, want)
			}
		}
	})
}
