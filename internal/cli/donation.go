package cli

import (
	"slices"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/tree"
)

// donationCommands are those of what accounts give to open-source repositories.
func donationCommands() []tree.Command {
	given, received := noun.Called("donation"), noun.Gift()
	return slices.Concat([]tree.Command{
		given.ListCommand("what the account gave to open-source repositories"),
		received.NamedList("donation received", "what repositories of the account were given"),
	}, act.Commands(
		act.Act{Words: "donation give", Summary: "give a key, money that a key pays, or a box, to a repository or to the pool",
			Op: "donation.create", Made: given, Done: "The gift {id} is active: {kind}.",
			Next: "Undo: yardmaster donation cancel {id}",
			Examples: []string{"yardmaster donation give --kind llm --target project --repo acme/web --key-id KEY",
				"yardmaster donation give --kind money --target pool --key-id KEY --usd 20"}},
		act.Act{Words: "donation cancel", Args: "ID", Summary: "take a gift back", Op: "donation.cancel", Of: given,
			Done: "The gift {id} is over.", Next: "yardmaster donation give makes another.",
			Examples: []string{"yardmaster donation cancel @last"}},
		act.Act{Words: "donation decline", Args: "ID", Summary: "refuse a gift to a repository of the account", Op: "donation.decline",
			Of: received, Done: "The gift {id} is over.", Next: "yardmaster donation received shows what there is still.",
			Examples: []string{"yardmaster donation decline @last"}},
		act.Act{Words: "donation model", Args: "ID MODEL", Summary: "pick the model of calls over a received gift; null clears",
			Op: "donation.set_model", Of: received, Plain: []string{"model"}, Done: "Calls over {id} ask for {1} from now on.",
			Next:     "yardmaster donation received shows the ceiling.",
			Examples: []string{`yardmaster donation model @last '{"provider": "anthropic", "model": "claude-haiku-4-5"}'`}},
	))
}
