package cli

import (
	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/tree"
)

// preferenceCommands are about the model that a person likes best.
func preferenceCommands() []tree.Command {
	all := act.Commands(
		act.Act{Words: "key preference", Summary: "the provider and the model that you like best", Op: "self.llm_pref_get",
			Next:     "yardmaster key preference set PROVIDER says another.",
			Examples: []string{"yardmaster key preference"}},
		act.Act{Words: "key preference set", Args: "PROVIDER",
			Summary: "have work that you alone ask for done with a model that you like, where its template leaves that open",
			Op:      "self.llm_pref_set", Plain: []string{"provider"}, Done: "It holds from the next run on.",
			More:     "It brings no key: without one of the account or of yours for the provider, runs go as if it were not set.",
			Next:     "Undo: yardmaster key preference clear",
			Examples: []string{"yardmaster key preference set anthropic --model claude-opus-4-1"}},
		act.Act{Words: "key preference clear", Summary: "return to the account's default", Op: "self.llm_pref_clear",
			Done: "Runs go as the account has it.", Next: "yardmaster key preference set PROVIDER says one again.",
			Examples: []string{"yardmaster key preference clear"}},
	)
	for i := range all {
		if all[i].Args == "PROVIDER" {
			all[i].Values["PROVIDER"] = tree.Fixed(providers()...)
		}
	}
	return all
}
