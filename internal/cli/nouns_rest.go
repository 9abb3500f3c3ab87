package cli

import (
	"slices"
	"strings"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// restCommands are those of what a person or an account sets now and then, each of which is one call.
func restCommands() []tree.Command {
	return slices.Concat(notifyingCommands(), accessCommands(), toldCommands(), copiesCommands(), act.Commands(
		act.Act{Words: "source linear", Summary: "where tasks with the sink linear go", Op: "integration.linear_get",
			Next: "yardmaster source linear set --team TEAM changes it."},
		act.Act{Words: "source linear set", Summary: "have tasks with the sink linear become issues of a team; its API key is read from standard input",
			Op: "integration.linear_set", Secret: "api_key", Prompt: "API key", Done: "Tasks with the sink linear become issues there.",
			Next: "Undo: yardmaster source linear delete", Examples: []string{"yardmaster source linear set --team ENG < key.txt"}},
		act.Act{Words: "source linear delete", Summary: "forget the API key of Linear", Op: "integration.linear_delete",
			Done: "Tasks with the sink linear are refused from now on.", Next: "yardmaster source linear set --team TEAM gives another."},
		act.Act{Words: "source mapping", Args: "ID [JSON]…", Summary: "set how the deliveries of a generic source are read",
			Op: "integration.mapping_set", Of: noun.Called("source"), Text: "mapping", Done: "It holds for what comes from now on.",
			Next:     "yardmaster source deliveries {id} shows what comes.",
			Examples: []string{"yardmaster source mapping errors --file mapping.json"}},
		act.Act{Words: "source preview", Args: "ID [JSON]…", Summary: "what a mapping would make of the last deliveries of a generic source",
			Op: "integration.mapping_preview", Of: noun.Called("source"), Text: "mapping",
			Next:     "yardmaster source mapping {id} --file FILE sets it.",
			Examples: []string{"yardmaster source preview errors --file mapping.json"}},
		act.Act{Words: "plan filing", Summary: "whether scouts may file plan documents into the account's repositories", Op: "plan.file_switch_get",
			Next: "yardmaster plan filing on and yardmaster plan filing off change it."},
		act.Act{Words: "plan filing on", Summary: "let scouts file plan documents", Op: "plan.file_switch_set",
			Fixed: map[string]string{"enabled": "true"}, Done: "Scouts may file plan documents.", Next: "Undo: yardmaster plan filing off"},
		act.Act{Words: "plan filing off", Summary: "forbid it", Op: "plan.file_switch_set",
			Fixed: map[string]string{"enabled": "false"}, Done: "Scouts may file no plan documents.",
			Next: "Undo: yardmaster plan filing on"},
		act.Act{Words: "account open-source", Summary: "the account's application as an open-source project, and what became of it",
			Op: "account.oss_verification_get", Next: "yardmaster account open-source apply makes one, or changes the one that waits.",
			Says: func(o act.Occasion) (done, _ string) {
				if o.Answer["application"] == nil {
					done = "The account has not applied."
				}
				return done, ""
			},
			Examples: []string{"yardmaster account open-source"}},
		act.Act{Words: "account open-source apply", Summary: "apply as an open-source project, or change the application that waits",
			Op: "account.oss_verification_apply", Done: "The application waits for an operator of the server.",
			Next: "yardmaster account open-source shows what becomes of it.",
			Examples: []string{"yardmaster account open-source apply --project-url https://example.com/acme/web " +
				`--statement "Apache-2.0; a website that ships with the product."`}},
	))
}

// notifyingCommands are about where notices are sent besides the dashboard.
func notifyingCommands() []tree.Command {
	route := noun.Route()
	routes := route.NamedList("notification routes", "the addresses of teams that get notices of the account")
	return append([]tree.Command{routes}, act.Commands(
		act.Act{Words: "notification routes create", Args: "ADDRESS", Op: "email_route.create", Plain: []string{"address"}, Made: route,
			Summary: "have notices of some kinds sent to an address, once somebody there has confirmed it",
			Done:    "{1} is asked to confirm it.", Next: "Undo: yardmaster notification routes delete {id}",
			Examples: []string{"yardmaster notification routes create team@example.com --kinds escalation,spending"}},
		act.Act{Words: "notification routes resend", Args: "ID", Summary: "mail the question again to an address that nobody has confirmed",
			Op: "email_route.resend", Of: route, Done: "It is asked again.", Next: "yardmaster notification routes shows whether it is confirmed."},
		act.Act{Words: "notification routes delete", Args: "ID", Summary: "send no more notices to an address", Op: "email_route.delete",
			Of: route, Done: "Nothing more is sent there.", Next: "yardmaster notification routes create makes another."},
		act.Act{Words: "notification webhook", Summary: "your own webhook for notifications", Op: "notification.webhook_get",
			Next: "yardmaster notification webhook set ADDRESS names another."},
		act.Act{Words: "notification webhook set", Args: "ADDRESS", Summary: "have what you are told of sent to an address, in the place of the one before",
			Op: "notification.webhook_set", Plain: []string{"url"}, Next: "Undo: yardmaster notification webhook clear",
			Examples: []string{"yardmaster notification webhook set https://chat.example.com/hook --format slack"}},
		act.Act{Words: "notification webhook clear", Summary: "send nothing more there", Op: "notification.webhook_clear",
			Done: "Nothing more is sent there.", Next: "yardmaster notification webhook set ADDRESS names another."},
		act.Act{Words: "notification webhook test", Summary: "send a message there, to see whether it comes",
			Op:   "notification.webhook_test",
			Done: "A message is sent.", Next: "yardmaster notification webhook shows whether it came."},
	)...)
}

// accessCommands are about how people sign in, and whose rights at a code host their work has.
func accessCommands() []tree.Command {
	repo := noun.Called("repo")
	all := act.Commands(
		act.Act{Words: "sso view", Summary: "the account's identity provider, if it has one of its own", Op: "org_sso.get",
			Next: "yardmaster sso set changes it."},
		act.Act{Words: "sso set", Summary: "let the account's people sign in at its own OpenID Connect provider", Op: "org_sso.set",
			SecretFile: "client_secret", Done: "People of these domains sign in there.", Next: "Undo: yardmaster sso delete",
			More:     "A new issuer ends the sessions that the old one vouched for.",
			Examples: []string{"yardmaster sso set --issuer https://id.example.com --client-id yard --domains example.com --secret-file secret.txt"}},
		act.Act{Words: "sso delete", Summary: "fall back to the server's own sign-in; sessions that the provider vouched for end", Op: "org_sso.delete",
			Done: "People sign in at the server.", Next: "yardmaster sso set names a provider again."},
		act.Act{Words: "github token", Summary: "the state of your own token of a code host", Op: "self.github_token_get",
			Next: "yardmaster github token set stores one."},
		act.Act{Words: "github token set", Summary: "store your own token of a code host (read from standard input), or replace it",
			Op: "self.github_token_set", Secret: "token", Prompt: "Token", Done: "It is kept.", Next: "Undo: yardmaster github token clear",
			More:     "By itself it changes nothing: github bind has a repository driven with it.",
			Examples: []string{"yardmaster github token set < token.txt"}},
		act.Act{Words: "github token clear", Summary: "forget your own token of a code host and all of its bindings", Op: "self.github_token_clear",
			Done: "It is forgotten; there it is good until you revoke it.", Next: "yardmaster github token set stores another."},
		act.Act{Words: "github bindings", Summary: "the repositories that you drive with your own token", Op: "self.repo_binding_list",
			Tables: map[string][]string{"data": {"repo", "state", "reason", "bound_at"}}},
		act.Act{Words: "github bind", Args: "OWNER/NAME", Summary: "drive a repository with your own token", Op: "self.repo_binding_set",
			Plain: []string{"repo"}, Done: "Your work on {0} goes there with your token.", Next: "Undo: yardmaster github unbind {0}"},
		act.Act{Words: "github unbind", Args: "OWNER/NAME", Summary: "drive it with the credential of the server's App again",
			Op: "self.repo_binding_clear", Of: repo, Done: "Your work on {id} goes there with the App's credential.",
			Next: "Undo: yardmaster github bind {id}"},
	)
	for i := range all {
		if all[i].Args == "OWNER/NAME" {
			all[i].Values["OWNER/NAME"] = noun.NamesOf(repo)
		}
	}
	return all
}

// toldCommands are about what agents are told besides their tasks and the prompts.
func toldCommands() []tree.Command {
	box := noun.Called("box")
	return append([]tree.Command{
		noun.Variable().NamedList("prompt variables", "what stands for {{KEY}} in prompts"),
	}, act.Commands(
		act.Act{Words: "prompt variables set", Args: "KEY VALUE…", Summary: "set what stands for {{KEY}} in prompts; everybody in the account can read it",
			Op: "config.set", Plain: []string{"key", "value"}, Done: "{0} is set.", Next: "yardmaster prompt variables shows them all.",
			Examples: []string{"yardmaster prompt variables set team Platform --scope account",
				"yardmaster prompt variables set style Terse. --scope template --ref default"}},
		act.Act{Words: "prompt variables delete", Args: "KEY", Summary: "delete a variable: prompts keep its name as it is written",
			Op: "config.delete", Plain: []string{"key"}, Thing: "variable", Done: "{0} is deleted.",
			Next: "yardmaster prompt variables set sets it anew."},
		act.Act{Words: "box prompt", Args: "ID [TEXT]…", Summary: "set what every agent on a box is told", Op: "box.set_prompt", Of: box,
			Text: "prompt", Before: "box.get", Done: "Agents on it are told that from their next run on.", Next: "Undo: yardmaster box unprompt {id}",
			Says:     toldBefore,
			Examples: []string{`yardmaster box prompt builder "The cache is in /srv/cache."`}},
		act.Act{Words: "box unprompt", Args: "ID", Summary: "tell agents on a box nothing more", Op: "box.set_prompt", Of: box,
			Fixed: map[string]string{"prompt": "null"}, Before: "box.get", Done: "Agents on it are told nothing more.",
			Next: `yardmaster box prompt {id} "…" sets another.`, Says: toldBefore},
		act.Act{Words: "box renew", Args: "ID", Summary: "have a box renew all its credentials", Op: "box.reissue_creds", Of: box,
			Done: "It renews them when it next hears of it.", Next: "yardmaster box view {id} shows how it is."},
	)...)
}

// toldBefore is how what a box tells its agents comes back; "" if that is not known, or if it told them nothing.
func toldBefore(o act.Occasion) (_, next string) {
	text := strings.TrimSpace(object.Text(o.Before["briefing"]))
	switch {
	case text == "":
		return "", ""
	case strings.Contains(text, "\n"):
		return "", o.Next("It was, for yardmaster box prompt {id} --file FILE:\n") + client.InertLines(text)
	}
	return "", o.Next("Undo: yardmaster box prompt {id} ") + client.Word(text)
}
