package cli

import (
	"slices"
	"strings"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// restCommands are those of what a person or an account sets now and then, each of which is one call.
func restCommands() []tree.Command {
	return slices.Concat(notifyingCommands(), accessCommands(), toldCommands(), commandsOf(
		act{words: "source linear", summary: "where tasks with the sink linear go", op: "integration.linear_get",
			next: "yardmaster source linear set --team TEAM changes it."},
		act{words: "source linear set", summary: "have tasks with the sink linear become issues of a team; its API key is read from standard input",
			op: "integration.linear_set", secret: "api_key", prompt: "API key", done: "Tasks with the sink linear become issues there.",
			next: "Undo: yardmaster source linear delete", examples: []string{"yardmaster source linear set --team ENG < key.txt"}},
		act{words: "source linear delete", summary: "forget the API key of Linear", op: "integration.linear_delete",
			done: "Tasks with the sink linear are refused from now on.", next: "yardmaster source linear set --team TEAM gives another."},
		act{words: "source mapping", args: "ID [JSON]…", summary: "set how the deliveries of a generic source are read",
			op: "integration.mapping_set", of: noun.Called("source"), text: "mapping", done: "It holds for what comes from now on.",
			next:     "yardmaster source deliveries {id} shows what comes.",
			examples: []string{"yardmaster source mapping errors --file mapping.json"}},
		act{words: "source preview", args: "ID [JSON]…", summary: "what a mapping would make of the last deliveries of a generic source",
			op: "integration.mapping_preview", of: noun.Called("source"), text: "mapping",
			next:     "yardmaster source mapping {id} --file FILE sets it.",
			examples: []string{"yardmaster source preview errors --file mapping.json"}},
		act{words: "plan filing", summary: "whether scouts may file plan documents into the account's repositories", op: "plan.file_switch_get",
			next: "yardmaster plan filing on and yardmaster plan filing off change it."},
		act{words: "plan filing on", summary: "let scouts file plan documents", op: "plan.file_switch_set",
			fixed: map[string]string{"enabled": "true"}, done: "Scouts may file plan documents.", next: "Undo: yardmaster plan filing off"},
		act{words: "plan filing off", summary: "forbid it", op: "plan.file_switch_set",
			fixed: map[string]string{"enabled": "false"}, done: "Scouts may file no plan documents.",
			next: "Undo: yardmaster plan filing on"},
		act{words: "account open-source", summary: "the account's application as an open-source project, and what became of it",
			op: "account.oss_verification_get", next: "yardmaster account open-source apply makes one, or changes the one that waits.",
			says: func(o occasion) (done, _ string) {
				if o.answer["application"] == nil {
					done = "The account has not applied."
				}
				return done, ""
			},
			examples: []string{"yardmaster account open-source"}},
		act{words: "account open-source apply", summary: "apply as an open-source project, or change the application that waits",
			op: "account.oss_verification_apply", done: "The application waits for an operator of the server.",
			next: "yardmaster account open-source shows what becomes of it.",
			examples: []string{"yardmaster account open-source apply --project-url https://example.com/acme/web " +
				`--statement "Apache-2.0; a website that ships with the product."`}},
	))
}

// notifyingCommands are about where notices are sent besides the dashboard.
func notifyingCommands() []tree.Command {
	route := noun.Route()
	routes := route.NamedList("notification routes", "the addresses of teams that get notices of the account")
	return append([]tree.Command{routes}, commandsOf(
		act{words: "notification routes create", args: "ADDRESS", op: "email_route.create", plain: []string{"address"}, made: route,
			summary: "have notices of some kinds sent to an address, once somebody there has confirmed it",
			done:    "{1} is asked to confirm it.", next: "Undo: yardmaster notification routes delete {id}",
			examples: []string{"yardmaster notification routes create team@example.com --kinds escalation,spending"}},
		act{words: "notification routes resend", args: "ID", summary: "mail the question again to an address that nobody has confirmed",
			op: "email_route.resend", of: route, done: "It is asked again.", next: "yardmaster notification routes shows whether it is confirmed."},
		act{words: "notification routes delete", args: "ID", summary: "send no more notices to an address", op: "email_route.delete",
			of: route, done: "Nothing more is sent there.", next: "yardmaster notification routes create makes another."},
		act{words: "notification webhook", summary: "your own webhook for notifications", op: "notification.webhook_get",
			next: "yardmaster notification webhook set ADDRESS names another."},
		act{words: "notification webhook set", args: "ADDRESS", summary: "have what you are told of sent to an address, in the place of the one before",
			op: "notification.webhook_set", plain: []string{"url"}, next: "Undo: yardmaster notification webhook clear",
			examples: []string{"yardmaster notification webhook set https://chat.example.com/hook --format slack"}},
		act{words: "notification webhook clear", summary: "send nothing more there", op: "notification.webhook_clear",
			done: "Nothing more is sent there.", next: "yardmaster notification webhook set ADDRESS names another."},
		act{words: "notification webhook test", summary: "send a message there, to see whether it comes", op: "notification.webhook_test",
			done: "A message is sent.", next: "yardmaster notification webhook shows whether it came."},
	)...)
}

// accessCommands are about how people sign in, and whose rights at a code host their work has.
func accessCommands() []tree.Command {
	repo := noun.Called("repo")
	all := commandsOf(
		act{words: "sso view", summary: "the account's identity provider, if it has one of its own", op: "org_sso.get",
			next: "yardmaster sso set changes it."},
		act{words: "sso set", summary: "let the account's people sign in at its own OpenID Connect provider", op: "org_sso.set",
			secretFile: "client_secret", done: "People of these domains sign in there.", next: "Undo: yardmaster sso delete",
			more:     "A new issuer ends the sessions that the old one vouched for.",
			examples: []string{"yardmaster sso set --issuer https://id.example.com --client-id yard --domains example.com --secret-file secret.txt"}},
		act{words: "sso delete", summary: "fall back to the server's own sign-in; sessions that the provider vouched for end", op: "org_sso.delete",
			done: "People sign in at the server.", next: "yardmaster sso set names a provider again."},
		act{words: "github token", summary: "the state of your own token of a code host", op: "self.github_token_get",
			next: "yardmaster github token set stores one."},
		act{words: "github token set", summary: "store your own token of a code host (read from standard input), or replace it",
			op: "self.github_token_set", secret: "token", prompt: "Token", done: "It is kept.", next: "Undo: yardmaster github token clear",
			more:     "By itself it changes nothing: github bind has a repository driven with it.",
			examples: []string{"yardmaster github token set < token.txt"}},
		act{words: "github token clear", summary: "forget your own token of a code host and all of its bindings", op: "self.github_token_clear",
			done: "It is forgotten; there it is good until you revoke it.", next: "yardmaster github token set stores another."},
		act{words: "github bindings", summary: "the repositories that you drive with your own token", op: "self.repo_binding_list",
			tables: map[string][]string{"data": {"repo", "state", "reason", "bound_at"}}},
		act{words: "github bind", args: "OWNER/NAME", summary: "drive a repository with your own token", op: "self.repo_binding_set",
			plain: []string{"repo"}, done: "Your work on {0} goes there with your token.", next: "Undo: yardmaster github unbind {0}"},
		act{words: "github unbind", args: "OWNER/NAME", summary: "drive it with the credential of the server's App again",
			op: "self.repo_binding_clear", of: repo, done: "Your work on {id} goes there with the App's credential.",
			next: "Undo: yardmaster github bind {id}"},
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
	}, commandsOf(
		act{words: "prompt variables set", args: "KEY VALUE…", summary: "set what stands for {{KEY}} in prompts; everybody in the account can read it",
			op: "config.set", plain: []string{"key", "value"}, done: "{0} is set.", next: "yardmaster prompt variables shows them all.",
			examples: []string{"yardmaster prompt variables set team Platform --scope account",
				"yardmaster prompt variables set style Terse. --scope template --ref default"}},
		act{words: "prompt variables delete", args: "KEY", summary: "delete a variable: prompts keep its name as it is written",
			op: "config.delete", plain: []string{"key"}, thing: "variable", done: "{0} is deleted.",
			next: "yardmaster prompt variables set sets it anew."},
		act{words: "box prompt", args: "ID [TEXT]…", summary: "set what every agent on a box is told", op: "box.set_prompt", of: box,
			text: "prompt", before: "box.get", done: "Agents on it are told that from their next run on.", next: "Undo: yardmaster box unprompt {id}",
			says:     toldBefore,
			examples: []string{`yardmaster box prompt builder "The cache is in /srv/cache."`}},
		act{words: "box unprompt", args: "ID", summary: "tell agents on a box nothing more", op: "box.set_prompt", of: box,
			fixed: map[string]string{"prompt": "null"}, before: "box.get", done: "Agents on it are told nothing more.",
			next: `yardmaster box prompt {id} "…" sets another.`, says: toldBefore},
		act{words: "box renew", args: "ID", summary: "have a box renew all its credentials", op: "box.reissue_creds", of: box,
			done: "It renews them when it next hears of it.", next: "yardmaster box view {id} shows how it is."},
	)...)
}

// toldBefore is how what a box tells its agents comes back; "" if that is not known, or if it told them nothing.
func toldBefore(o occasion) (_, next string) {
	text := strings.TrimSpace(object.Text(o.before["briefing"]))
	switch {
	case text == "":
		return "", ""
	case strings.Contains(text, "\n"):
		return "", o.next("It was, for yardmaster box prompt {id} --file FILE:\n") + client.InertLines(text)
	}
	return "", o.next("Undo: yardmaster box prompt {id} ") + client.Word(text)
}
