package main

import (
	"context"
	"slices"

	flag "github.com/spf13/pflag"
)

// accountCommands are those of what an account keeps: all of it is data.
func accountCommands() []command {
	template, token, member := nounCalled("template"), nounCalled("token"), nounCalled("member")
	invitation, webhook, source := nounCalled("invitation"), nounCalled("webhook"), nounCalled("source")
	return slices.Concat(secretCommands(), []command{
		template.listCommand("the agent templates"),
		template.viewCommand("one template", "yardmaster template view default"),
		token.listCommand("the account's tokens, masked"),
		member.listCommand("who belongs to the account"),
		invitation.listCommand("who was invited to the account"),
		webhook.listCommand("the webhooks"),
		source.listCommand("the systems whose deliveries become asks"),
		source.viewCommand("one source"),
		nounCalled("audit").listCommand("what happened in the account, newest first"),
	}, commandsOf(
		act{words: "template set", args: "NAME", summary: "create or fully replace a template", op: "template.set", of: template,
			more: "What is left out gets its default.", done: "The template {id} is set.",
			next:     "yardmaster template view {id} shows all of it.",
			examples: []string{"yardmaster template set codex --agent codex --model gpt-5"}},
		act{words: "template delete", args: "NAME", summary: "delete a template", op: "template.delete", of: template,
			done: "The template {id} is gone.",
			next: "yardmaster template set {id} makes it anew."},
		act{words: "token create", summary: "mint a token, which is shown once", op: "token.mint", made: token,
			done: "{token}", next: "Undo: yardmaster token revoke {id}",
			examples: []string{"yardmaster token create --name ci --scopes read:tasks --expires-in-days 30"}},
		act{words: "token rename", args: "ID NAME", summary: "change its name", op: "token.rename", of: token,
			plain: []string{"name"}, done: "It is called {1} now.",
			next: "yardmaster token list shows all."},
		act{words: "token revoke", args: "ID", summary: "end a token", op: "token.revoke", of: token,
			done: "The token {id} is good for nothing any more.",
			next: "yardmaster token create makes another."},
		act{words: "member invite", summary: "add a registered user, or invite an address", op: "member.invite",
			next: "A link is for them to open, once: send it, where the server sends no mail.\n" +
				"Undo: yardmaster invitation revoke {invitation.id}, or yardmaster member remove LOGIN",
			examples: []string{"yardmaster member invite --email bob@example.com --role member"}},
		act{words: "member role", args: "MEMBER ROLE", summary: "change what a member may do", op: "member.set_role",
			of: member, plain: []string{"role"},
			done: "Their role is {1} now.", next: "yardmaster member list shows all.",
			examples: []string{"yardmaster member role bob admin"}},
		act{words: "member remove", args: "MEMBER", summary: "remove a member; their tokens of the account stop",
			op: "member.remove", of: member,
			done: "They are no member any more.", next: "Undo: yardmaster member invite --login LOGIN"},
		act{words: "invitation revoke", args: "ID", summary: "withdraw an invitation", op: "member.revoke_invitation",
			of: invitation, done: "Withdrawn.",
			next: "yardmaster member invite makes another."},
		act{words: "webhook create", summary: "have events sent to an address", op: "webhook.create", made: webhook,
			next:     "Undo: yardmaster webhook delete {id}",
			examples: []string{"yardmaster webhook create --name ci --url https://ci.example.com/hook --events pr.merged"}},
		act{words: "webhook test", args: "ID", summary: "send a test.ping", op: "webhook.test", of: webhook,
			next: "yardmaster webhook deliveries shows what became of it."},
		act{words: "webhook revive", args: "ID", summary: "send events again to one that was unhealthy",
			op: "webhook.revive", of: webhook, done: "Events are sent there again.",
			next: "yardmaster webhook deliveries shows what becomes of them."},
		act{words: "webhook delete", args: "ID", summary: "delete a webhook", op: "webhook.delete", of: webhook, done: "Deleted.",
			next: "yardmaster webhook create makes another."},
		act{words: "webhook deliveries", summary: "the last attempts", op: "webhook.deliveries"},
		act{words: "source connect", summary: "connect a system whose deliveries become asks",
			op: "integration.source_connect", made: source,
			next:     "Undo: yardmaster source disconnect {id}",
			examples: []string{"yardmaster source connect --name errors --kind sentry --projects front-end=acme/web"}},
		act{words: "source update", args: "ID", summary: "change what is done with its deliveries",
			op: "integration.update", of: source, done: "Changed.",
			next: "yardmaster source view {id} shows it."},
		act{words: "source deliveries", args: "ID", summary: "what came, and what became of it", op: "integration.deliveries", of: source},
		act{words: "source disconnect", args: "ID", summary: "disconnect a system", op: "integration.disconnect",
			of: source, done: "Disconnected.",
			next: "yardmaster source connect makes it anew, with another secret."},
		act{words: "budget view", summary: "what the account may spend in a month, and has spent in this one", op: "billing.spend_cap_get",
			next: "yardmaster budget usage has it member by member."},
		act{words: "budget usage", summary: "what models cost in a month, member by member", op: "billing.usage",
			examples: []string{"yardmaster budget usage --month 2026-11"}},
		act{words: "budget set", args: "USD",
			summary: "cap what the account may spend in a month; null takes the cap away", op: "billing.spend_cap_set",
			plain: []string{"usd"}, done: "The cap of a month, in US dollars: {0}.",
			next: "Undo: yardmaster budget set {before.usd}", before: "billing.spend_cap_get",
			examples: []string{"yardmaster budget set 250"}},
		act{words: "budget member", args: "MEMBER USD", summary: "cap what one member's work may cost in a month",
			op: "billing.member_cap_set", of: member,
			plain: []string{"usd"}, done: "The cap of a month, in US dollars: {1}.", next: "Undo: yardmaster budget member {0} null"},
		act{words: "budget task", args: "ID USD", summary: "give a task another budget; null takes it away",
			op: "task.budget_set", of: nounCalled("task"),
			plain: []string{"usd"}, done: "What the task may spend, in US dollars: {1}.",
			next: "Undo: yardmaster budget task {0} {before.budget.usd}", before: "task.run_status"},
		act{words: "budget plan", args: "ID USD",
			summary: "cap what a plan's tasks may spend together; null takes the cap away", op: "plan.budget_set",
			of: nounCalled("plan"), plain: []string{"usd"}, done: "What the plan may spend, in US dollars: {1}.",
			next: "Undo: yardmaster budget plan {0} {before.budget_usd}", before: "plan.get"},
	))
}

// secretCommands are about secrets of the account, and with --repo of a repository.
func secretCommands() []command {
	ofAccount := nounCalled("secret")
	lists := ofAccount.listCommand("the secrets by name; never a value", "yardmaster secret list", "yardmaster secret list --repo acme/web")
	lists.define = func(fl *flag.FlagSet) action {
		l := &listing{}
		l.add(fl, ofAccount)
		fl.StringVar(&l.repo, "repo", "", "`OWNER/NAME`: those of the repository, in the place of the account's")
		return func(ctx context.Context, _ []string) error {
			if l.repo != "" {
				return nounCalled("repo-secret").runList(ctx, l)
			}
			return ofAccount.runList(ctx, l)
		}
	}
	set := eitherSecret(act{words: "secret set", args: "NAME",
		summary: "keep a secret (read from standard input), in the place of what had its name",
		secret:  "value", prompt: "Value", plain: []string{"name"},
		done: "{0} is kept; agents get it from their next run on.", next: "Undo: yardmaster secret delete {0}",
		examples: []string{"yardmaster secret set NPM_TOKEN < token.txt",
			"yardmaster secret set NPM_TOKEN --repo acme/web --delivery broker --hosts packages.example.com"}},
		"secret.set", "project_secret.set")
	set.values["delivery"] = fixed("env", "broker")
	gone := eitherSecret(act{words: "secret delete", args: "NAME", summary: "delete a secret",
		plain: []string{"name"}, done: "{0} is deleted.",
		next: "yardmaster secret set {0} keeps another.", examples: []string{"yardmaster secret delete NPM_TOKEN"}},
		"secret.delete", "project_secret.delete")
	gone.values["NAME"] = namesOf(ofAccount)
	return []command{lists, set, gone}
}

// eitherSecret is an act on a secret of the account, and on one of a repository where
// --repo names it.
func eitherSecret(a act, account, ofRepo string) command {
	a.op = account
	c := a.command()
	c.define = func(fl *flag.FlagSet) action {
		inAccount := a.define(fl)
		b := a
		b.op, b.perRepo, b.next = ofRepo, true, a.next+" --repo OWNER/NAME"
		own := flag.NewFlagSet("", flag.ContinueOnError)
		inRepo := b.define(own)
		repo := fl.String("repo", "", "`OWNER/NAME`: a secret of the repository, in the place of the account's")
		return func(ctx context.Context, plain []string) error {
			if *repo == "" {
				return inAccount(ctx, plain)
			}
			var err error
			fl.Visit(func(f *flag.Flag) {
				if own.Lookup(f.Name) != nil && err == nil {
					err = own.Set(f.Name, f.Value.String())
				}
			})
			if err != nil {
				return err
			}
			return inRepo(ctx, plain)
		}
	}
	return c
}
