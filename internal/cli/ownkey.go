package cli

import (
	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/noun"
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

// upkeepCommands are about a key that is there, of the account's pool.
func upkeepCommands(key *noun.Noun) []tree.Command {
	view := "yardmaster key view {id} shows it."
	return act.Commands(
		act.Act{Words: "key verify", Args: "ID", Summary: "ask the provider whether it takes a key, which costs nothing",
			Op: "billing.key_verify", Of: key, Next: view, Examples: []string{"yardmaster key verify @last"}},
		act.Act{Words: "key rotate", Args: "ID", Summary: "give a key another secret (read from standard input)", Op: "billing.key_rotate",
			Of: key, Secret: "key", Prompt: "Key", Done: "Calls from now on have the new secret.",
			Next: "yardmaster key verify {id} asks whether it works.", Examples: []string{"yardmaster key rotate @last < key.txt"}},
		act.Act{Words: "key kind", Args: "ID KIND", Summary: "say how calls over a key are paid: metered or subscription", Op: "billing.key_kind_set",
			Of: key, Plain: []string{"kind"}, Next: view,
			Examples: []string{"yardmaster key kind @last subscription"}},
		act.Act{Words: "key capacity", Args: "ID CALLS", Summary: "say how many calls at once go over a key; null clears it",
			Op: "billing.key_capacity_set", Of: key, Plain: []string{"capacity"}, Next: view,
			Examples: []string{"yardmaster key capacity @last 4"}},
		act.Act{Words: "key priority", Args: "ID PRIORITY", Summary: "place a key: the lowest is used first",
			Op: "billing.key_priority_set", Of: key, Plain: []string{"priority"}, Next: "yardmaster key list has them in their order.",
			Examples: []string{"yardmaster key priority @last 10"}},
		act.Act{Words: "key models", Args: "ID", Summary: "the models that a key may use", Op: "billing.key_models", Of: key,
			Examples: []string{"yardmaster key models @last"}},
		act.Act{Words: "key offers", Args: "PROVIDER", Summary: "the models of a key that is not added (read from standard input), which nothing keeps",
			Op: "billing.provider_models", Plain: []string{"provider"}, Secret: "key", Prompt: "Key",
			Next: "yardmaster key add adds it.", Examples: []string{"yardmaster key offers anthropic < key.txt"}},
	)
}

// ownKeyCommands are about keys of one's own.
func ownKeyCommands() []tree.Command {
	left := "yardmaster key mine lists yours."
	const example = " 01a22378-e54e-7d85-9846-37f058c0da96"
	return act.Commands(
		act.Act{Words: "key mine", Summary: "your own model keys in the account, which nobody else sees", Op: "self.keys_list",
			Tables:   map[string][]string{"data": {"id", "provider", "label", "masked", "kind", "status", "priority", "last_error"}},
			Examples: []string{"yardmaster key mine"}},
		act.Act{Words: "key mine add", Args: "PROVIDER", Summary: "add a key of your own (read from standard input), for what you alone ask for",
			Op: "self.key_add", Plain: []string{"provider"}, Secret: "key", Prompt: "Key",
			Done: "It goes before the account's keys for your work.",
			Next: "Undo: yardmaster key mine delete {id}", Examples: []string{"yardmaster key mine add anthropic < key.txt"}},
		act.Act{Words: "key mine offers", Args: "PROVIDER", Summary: "the models of a key that is not added (read from standard input), which nothing keeps",
			Op: "self.provider_models", Plain: []string{"provider"}, Secret: "key", Prompt: "Key",
			Next: "yardmaster key mine add adds it.", Examples: []string{"yardmaster key mine offers anthropic < key.txt"}},
		act.Act{Words: "key mine verify", Args: "KEY-ID", Summary: "ask the provider whether it takes your key, which costs nothing",
			Op: "self.key_verify", Plain: []string{"id"}, Next: left, Examples: []string{"yardmaster key mine verify" + example}},
		act.Act{Words: "key mine rotate", Args: "KEY-ID", Summary: "give your key another secret (read from standard input)", Op: "self.key_rotate",
			Plain: []string{"id"}, Secret: "key", Prompt: "Key", Done: "Calls from now on have the new secret.",
			Next:     "yardmaster key mine verify {0} asks whether it works.",
			Examples: []string{"yardmaster key mine rotate" + example + " < key.txt"}},
		act.Act{Words: "key mine kind", Args: "KEY-ID KIND", Summary: "say how calls over your key are paid: metered or subscription",
			Op: "self.key_kind_set", Plain: []string{"id", "kind"}, Next: left,
			Examples: []string{"yardmaster key mine kind" + example + " subscription"}},
		act.Act{Words: "key mine capacity", Args: "KEY-ID CALLS", Summary: "say how many calls at once go over your key; null clears it",
			Op: "self.key_capacity_set", Plain: []string{"id", "capacity"}, Next: left,
			Examples: []string{"yardmaster key mine capacity" + example + " 4"}},
		act.Act{Words: "key mine priority", Args: "KEY-ID PRIORITY", Summary: "place your key among yours: the lowest is used first",
			Op: "self.key_priority_set", Plain: []string{"id", "priority"}, Next: left,
			Examples: []string{"yardmaster key mine priority" + example + " 10"}},
		act.Act{Words: "key mine delete", Args: "KEY-ID", Summary: "forget your key", Op: "self.key_delete",
			Plain: []string{"id"}, Thing: "key",
			Done: "It is forgotten.", Next: "yardmaster key mine add puts one in its place.",
			Examples: []string{"yardmaster key mine delete" + example}},
	)
}

// copiesCommands are about where copies of model calls are sent.
func copiesCommands() []tree.Command {
	return act.Commands(
		act.Act{Words: "account copies", Summary: "where copies of the account's model calls are sent, and how many", Op: "billing.log_sink_get",
			Next:     "yardmaster account copies set KIND ADDRESS names a place.",
			Examples: []string{"yardmaster account copies"}},
		act.Act{Words: "account copies set", Args: "KIND ADDRESS",
			Summary: "send copies of the account's model calls, prompts and answers, to a place of its own: https, otlp or s3",
			Op:      "billing.log_sink_set", Plain: []string{"kind", "url"}, SecretFile: "secret_access_key",
			Done: "It has taken a probe, and gets what is called from now on.", Next: "Undo: yardmaster account copies clear",
			Examples: []string{"yardmaster account copies set otlp https://collector.example.com"}},
		act.Act{Words: "account copies clear", Summary: "send copies of model calls nowhere any more", Op: "billing.log_sink_clear",
			Done: "Nothing more is sent.", Next: "yardmaster account copies set KIND ADDRESS names a place again.",
			Examples: []string{"yardmaster account copies clear"}},
	)
}
