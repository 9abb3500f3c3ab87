package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// accountCommands are those of what an account keeps: all of it is data.
func accountCommands() []tree.Command {
	template, token, member := noun.Called("template"), noun.Called("token"), noun.Called("member")
	invitation, webhook, source := noun.Called("invitation"), noun.Called("webhook"), noun.Called("source")
	happened := noun.Called("audit").ListCommand("what happened in the account, newest first")
	happened.Values["kind"] = eventKinds
	return slices.Concat(secretCommands(), []tree.Command{
		template.ListCommand("the agent templates"),
		template.ViewCommand("one template", "yardmaster template view default"),
		token.ListCommand("the account's tokens, masked"),
		member.ListCommand("who belongs to the account"),
		invitation.ListCommand("who was invited to the account"),
		webhook.ListCommand("the webhooks"),
		source.ListCommand("the systems whose deliveries become asks"),
		source.ViewCommand("one source"),
		noun.Attempt().NamedList("webhook deliveries", "the last 100 attempts, newest first"),
		noun.SourceDelivery().ListUnder("source deliveries", "what came, and what became of it", source, "id"),
		happened,
	}, act.Commands(
		act.Act{Words: "template set", Args: "NAME", Summary: "create or fully replace a template", Op: "template.set", Of: template,
			More: "What is left out gets its default.", Done: "The template {id} is set.",
			Next:   "yardmaster template view {id} shows all of it.",
			Before: "template.get", Says: func(o act.Occasion) (string, string) {
				switch {
				case o.Answer["created_at"] != nil && o.Answer["created_at"] == o.Answer["updated_at"]: // there was none of the account
					return "", o.Next("Undo: yardmaster template delete {id}")
				case o.Before == nil || o.Before["created_at"] == nil:
					return "", ""
				}
				return o.Done("The template {id} is set, in the place of the one before."), "Undo: " + templateAgain(o.Before)
			},
			Examples: []string{"yardmaster template set codex --agent codex --model gpt-5"}},
		act.Act{Words: "template delete", Args: "NAME", Summary: "delete a template", Op: "template.delete", Of: template,
			Done:   "The template {id} is gone.",
			Next:   "yardmaster template set {id} makes it anew.",
			Before: "template.get", Says: func(o act.Occasion) (string, string) {
				if o.Before == nil {
					return "", ""
				}
				return "", "Undo: " + templateAgain(o.Before)
			}},
		act.Act{Words: "token create", Summary: "mint a token, which is shown once", Op: "token.mint", Made: token,
			Done: "{token}", Next: "Undo: yardmaster token revoke {id}",
			Examples: []string{"yardmaster token create --name ci --scopes read:tasks --expires-in-days 30"}},
		act.Act{Words: "token rename", Args: "ID NAME", Summary: "change its name", Op: "token.rename", Of: token,
			Plain: []string{"name"}, Done: "It is called {1} now.",
			Next: "yardmaster token list shows all.", Earlier: rowBefore("token"), Says: func(o act.Occasion) (string, string) {
				if o.Before["name"] == nil {
					return "", ""
				}
				return "", o.Next("Undo: yardmaster token rename {id} {before.name}")
			}},
		act.Act{Words: "token revoke", Args: "ID", Summary: "end a token", Op: "token.revoke", Of: token,
			Done: "The token {id} is good for nothing any more.", Earlier: rowBefore("token"),
			Next: "yardmaster token create makes another."},
	), []tree.Command{byAddress(
		act.Act{Words: "member invite", Summary: "invite a registered user, or an address", Op: "member.invite",
			Says: func(o act.Occasion) (string, string) {
				if login := object.Text(object.Map(o.Answer["member"])["login"]); login != "" {
					return o.Done("{member.login} belongs to the account now, as {member.role}."),
						o.Next("Undo: yardmaster member remove {member.login}")
				}
				if login := object.Text(object.Map(o.Answer["invitation"])["login"]); login != "" {
					return o.Done("{invitation.login} is invited, as {invitation.role}, if anybody has that login."),
						o.Next("They see it when they sign in, and accept. Undo: yardmaster invitation revoke {invitation.id}")
				}
				link := ""
				if o.Answer["link"] != nil {
					link = "\nTheir link, which works once: {link}"
				}
				return o.Done("{invitation.email} is invited, as {invitation.role}.") + o.Done(link),
					o.Next("Where the server sends no mail, send it. Undo: yardmaster invitation revoke {invitation.id}")
			},
			Next:     "yardmaster member list shows who belongs to the account.",
			Examples: []string{"yardmaster member invite bob@example.com --role member", "yardmaster member invite --login bob"}},
	)}, act.Commands(
		act.Act{Words: "member role", Args: "MEMBER ROLE", Summary: "change what a member may do", Op: "member.set_role",
			Of: member, Plain: []string{"role"},
			Done: "Their role is {1} now.", Next: "yardmaster member list shows all.",
			Earlier: rowBefore("member"), Says: func(o act.Occasion) (string, string) {
				if o.Before == nil || o.Before["role"] == o.Plain[1] {
					return "", ""
				}
				return o.Done("{before.login} is {1} now."), o.Next("Undo: yardmaster member role {before.login} {before.role}")
			},
			Examples: []string{"yardmaster member role bob admin"}},
		act.Act{Words: "member remove", Args: "MEMBER", Summary: "remove a member; their tokens of the account stop",
			Op: "member.remove", Of: member,
			Done: "They are no member any more.", Next: "yardmaster member invite adds them again.",
			Earlier: rowBefore("member"), Says: func(o act.Occasion) (string, string) {
				if o.Before == nil {
					return "", ""
				}
				return o.Done("{before.login} is no member any more."),
					o.Next("Undo: yardmaster member invite --login {before.login} --role {before.role}")
			}},
	), []tree.Command{{Words: "member leave", Summary: "open the page on which you leave the account; your tokens of it stop then",
		Define: tree.Nothing(runMemberLeave),
		More:   "A token cannot leave: it takes you, signed in in a browser. Who manages the account can have you back."},
	}, act.Commands(
		act.Act{Words: "invitation revoke", Args: "ID", Summary: "withdraw an invitation", Op: "member.revoke_invitation",
			Of: invitation, Done: "Withdrawn.",
			Next: "yardmaster member invite makes another."},
		act.Act{Words: "webhook create", Summary: "have events sent to an address", Op: "webhook.create", Made: webhook,
			Next:     "Undo: yardmaster webhook delete {id}",
			Examples: []string{"yardmaster webhook create --name ci --url https://ci.example.com/hook --events pr.merged"}},
		act.Act{Words: "webhook test", Args: "ID", Summary: "send a test.ping", Op: "webhook.test", Of: webhook,
			Next: "yardmaster webhook deliveries shows what became of it."},
		act.Act{Words: "webhook revive", Args: "ID", Summary: "send events again to one that was unhealthy",
			Op: "webhook.revive", Of: webhook, Done: "Events are sent there again.",
			Next: "yardmaster webhook deliveries shows what becomes of them."},
		act.Act{Words: "webhook delete", Args: "ID", Summary: "delete a webhook", Op: "webhook.delete", Of: webhook, Done: "Deleted.",
			Next: "yardmaster webhook create makes another."},
		act.Act{Words: "webhook redeliver", Args: "ID", Summary: "send the event of an attempt once more", Op: "webhook.redeliver",
			Of: noun.Attempt(), Done: "It is sent again.", Next: "yardmaster webhook deliveries shows what becomes of it.",
			Examples: []string{"yardmaster webhook redeliver @last"}},
		act.Act{Words: "source connect", Summary: "connect a system whose deliveries become asks",
			Op: "integration.source_connect", Made: source,
			Next:     "Undo: yardmaster source disconnect {id}",
			Examples: []string{"yardmaster source connect --name errors --kind sentry --projects front-end=acme/web"}},
		act.Act{Words: "source update", Args: "ID", Summary: "change what is done with its deliveries",
			Op: "integration.update", Of: source, Done: "Changed.",
			Next: "yardmaster source view {id} shows it."},
		act.Act{Words: "source rotate", Args: "ID", Summary: "give it another secret; the one before is good for 24 hours more",
			Op: "integration.rotate", Of: source, SecretFile: "secret",
			More: "The server makes one, or takes with --secret-file the one that the other system has made.",
			Next: "yardmaster source deliveries {id} shows what comes."},
		act.Act{Words: "source disconnect", Args: "ID", Summary: "disconnect a system", Op: "integration.disconnect",
			Of: source, Done: "Disconnected.",
			Next: "yardmaster source connect makes it anew, with another secret."},
		act.Act{Words: "budget view", Summary: "what the account may spend in a month, and has spent in this one", Op: "billing.spend_cap_get",
			Plainly: plainBudget,
			Next:    "yardmaster budget usage has it member by member."},
		act.Act{Words: "budget usage", Summary: "what models cost in a month, part by part", Op: "billing.usage",
			Plainly: plainUsage, Tables: usageTables,
			Examples: []string{"yardmaster budget usage --month 2026-11", "yardmaster budget usage --csv key",
				"yardmaster budget usage --days-by member"}},
		act.Act{Words: "budget set", Args: "USD",
			Summary: "cap what the account may spend in a month; null takes the cap away", Op: "billing.spend_cap_set",
			Plain: []string{"usd"}, Done: "The cap of a month, in US dollars: {0}.",
			Next: "Undo: yardmaster budget set {before.usd}", Before: "billing.spend_cap_get", Learn: learnUnpriced, Says: capSays,
			Examples: []string{"yardmaster budget set 250"}},
		act.Act{Words: "budget member", Args: "MEMBER USD", Summary: "cap what one member's work may cost in a month",
			Op: "billing.member_cap_set", Of: member,
			Plain: []string{"usd"}, Done: "The cap of a month, in US dollars: {1}.", Next: "Undo: yardmaster budget member {0} null",
			Earlier: capBefore, Says: func(o act.Occasion) (string, string) {
				if o.Before["cap_usd"] == nil {
					return "", ""
				}
				return "", o.Next("Undo: yardmaster budget member {0} {before.cap_usd}")
			}},
		act.Act{Words: "budget repo", Args: "OWNER/NAME USD",
			Summary: "cap what the work on one repository may cost in a month; null takes the cap away", Op: "project.budget_set",
			Of: noun.Called("repo"), Plain: []string{"usd"}, Done: "The cap of a month, in US dollars: {1}.",
			Next: "Undo: yardmaster budget repo {0} null", Examples: []string{"yardmaster budget repo acme/web 80"}},
		act.Act{Words: "budget key", Args: "KEY USD",
			Summary: "cap what calls over one key may cost in a month; null takes the cap away", Op: "billing.key_budget_set",
			Of: noun.Called("key"), Plain: []string{"usd"}, Done: "The cap of a month, in US dollars: {1}.",
			Next: "Undo: yardmaster budget key {0} null", Examples: []string{`yardmaster budget key "Team key" 50`}},
		act.Act{Words: "budget task", Args: "ID USD", Summary: "give a task another budget; null takes it away",
			Op: "task.budget_set", Of: noun.Called("task"),
			Plain: []string{"usd"}, Done: "What the task may spend, in US dollars: {1}.",
			Next: "Undo: yardmaster budget task {0} {before.budget.usd}", Before: "task.run_status"},
		act.Act{Words: "budget plan", Args: "ID USD",
			Summary: "cap what a plan's tasks may spend together; null takes the cap away", Op: "plan.budget_set",
			Of: noun.Called("plan"), Plain: []string{"usd"}, Done: "What the plan may spend, in US dollars: {1}.",
			Next: "Undo: yardmaster budget plan {0} {before.budget_usd}", Before: "plan.get"},
		act.Act{Words: "billing view", Summary: "the account's plan, what it pays for, and this month's spending", Op: "billing.get",
			Next: "yardmaster billing checkout seats opens a page to pay on, where payment.provider is set."},
		act.Act{Words: "billing checkout", Args: "KIND", Summary: "open a page to pay for seats or oss_donor on", Op: "billing.checkout",
			Plain: []string{"kind"}, Next: "Open the address in a browser. yardmaster billing view shows what was paid.",
			Examples: []string{"yardmaster billing checkout seats --quantity 4"}},
		act.Act{Words: "billing portal", Summary: "open the page for cards, invoices and subscriptions", Op: "billing.portal",
			Next: "Open the address in a browser within minutes. yardmaster billing view shows what became of it."},
	))
}

// runMemberLeave opens the page of a person's own settings.
func runMemberLeave(ctx context.Context, _ []string) error {
	address, _ := signin.Server()
	if err := noun.Browse(ctx, address+"/ui/settings"); err != nil {
		return err
	}
	fmt.Println("Nothing has changed yet. You leave the account there, as it takes a signed-in browser.")
	return nil
}

// byAddress is the command of an act that takes an address as its argument, in the place of --email.
func byAddress(a act.Act) tree.Command {
	c := a.Command()
	define := c.Define
	c.Args, c.Define = "[ADDRESS]", func(fl *flag.FlagSet) tree.Action {
		do := define(fl)
		return func(ctx context.Context, plain []string) error {
			if len(plain) > 0 {
				switch {
				case !strings.Contains(plain[0], "@"):
					return exit.Misused("%q is no address; a registered user is named with --login", plain[0])
				case fl.Changed("email"):
					return exit.Misused("give the address or --email, not both")
				}
				if err := fl.Set("email", plain[0]); err != nil {
					return err
				}
			}
			return do(ctx, nil)
		}
	}
	return c
}

// secretCommands are about secrets of the account, and with --repo of a repository.
func secretCommands() []tree.Command {
	ofAccount := noun.Called("secret")
	lists := ofAccount.ListCommand("the secrets by name; never a value", "yardmaster secret list", "yardmaster secret list --repo acme/web")
	lists.Define = func(fl *flag.FlagSet) tree.Action {
		l := &noun.Listing{}
		l.Add(fl, ofAccount)
		fl.StringVar(&l.Repo, "repo", "", "`OWNER/NAME`: those of the repository, in the place of the account's")
		return func(ctx context.Context, _ []string) error {
			if l.Repo != "" {
				return noun.Called("repo-secret").RunList(ctx, l)
			}
			return ofAccount.RunList(ctx, l)
		}
	}
	set := eitherSecret(act.Act{Words: "secret set", Args: "NAME",
		Summary: "keep a secret (read from standard input), in the place of what had its name",
		Secret:  "value", Prompt: "Value", Plain: []string{"name"},
		Done: "{0} is kept; agents get it from their next run on.", Next: "Undo: yardmaster secret delete {0}{flags}",
		Says: func(o act.Occasion) (string, string) {
			if o.Before == nil {
				return "", ""
			}
			return o.Done("{0} is kept, in the place of the value before; agents get it from their next run on."),
				o.Next("The value before is gone: no command brings it back. yardmaster secret delete {0}{flags} takes this one away.")
		},
		Examples: []string{"yardmaster secret set NPM_TOKEN < token.txt",
			"yardmaster secret set NPM_TOKEN --repo acme/web --delivery broker --hosts packages.example.com"}},
		"secret.set", "project_secret.set")
	set.Values["delivery"] = tree.Fixed("env", "broker")
	gone := eitherSecret(act.Act{Words: "secret delete", Args: "NAME", Summary: "delete a secret",
		Plain: []string{"name"}, Done: "{0} is deleted.",
		Next: "The value is gone: no command brings it back. yardmaster secret set {0}{flags} keeps another.", Examples: []string{"yardmaster secret delete NPM_TOKEN"}},
		"secret.delete", "project_secret.delete")
	gone.Values["NAME"] = noun.NamesOf(ofAccount)
	gone.Picks = func(ctx context.Context, prompt, repo string) (string, error) {
		if repo != "" {
			return noun.Called("repo-secret").Pick(ctx, prompt, repo, nil)
		}
		return ofAccount.Pick(ctx, prompt, "", nil)
	}
	return []tree.Command{lists, set, gone}
}

// eitherSecret is an act on a secret of the account, and on one of a repository where
// --repo names it.
func eitherSecret(a act.Act, account, ofRepo string) tree.Command {
	a.Op, a.Place = account, " among those of the account; --repo OWNER/NAME names the repository of one"
	c := a.Command()
	c.Define = func(fl *flag.FlagSet) tree.Action {
		var environment *flag.Flag
		a.Earlier = func(ctx context.Context, c *client.Client, plain []string) any {
			return secretBefore(ctx, c, noun.Called("secret"), nil, plain[0], environment)
		}
		inAccount := a.Define(fl)
		environment = fl.Lookup("environment")
		b := a
		b.Op, b.PerRepo, b.Place = ofRepo, true, " in that repository"
		own := flag.NewFlagSet("", flag.ContinueOnError)
		b.Earlier = func(ctx context.Context, c *client.Client, plain []string) any {
			in, err := noun.InRepo(ctx, own.Lookup("repo").Value.String(), nil)
			if err != nil {
				return nil
			}
			return secretBefore(ctx, c, noun.Called("repo-secret"), in, plain[0], environment)
		}
		withinRepo := b.Define(own)
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
			return withinRepo(ctx, plain)
		}
	}
	return c
}

// secretBefore is the secret of a name, as the list has it; nil if there is none.
func secretBefore(ctx context.Context, c *client.Client, of *noun.Noun, in []capability.Given, name string, environment *flag.Flag) any {
	rows, _, err := of.Rows(ctx, c, in, noun.Everything)
	if err != nil {
		return nil
	}
	for _, r := range rows {
		v, _ := object.Decode(r)
		if row := object.Map(v); of.ID(row) == name && object.Text(row["environment"]) == environment.Value.String() {
			return row
		}
	}
	return nil
}

// rowBefore reads an object of a noun as the list has it.
func rowBefore(kind string) func(ctx context.Context, c *client.Client, plain []string) any {
	return func(ctx context.Context, c *client.Client, plain []string) any {
		b, err := noun.Called(kind).One(ctx, c, plain[0])
		if err != nil {
			return nil
		}
		v, _ := object.Decode(b)
		return v
	}
}

// capBefore is what a member costs, and may cost.
func capBefore(ctx context.Context, c *client.Client, plain []string) any {
	var usage struct {
		Members []map[string]any `json:"members"`
	}
	if c.Call(ctx, http.MethodGet, "/v1/billing/usage", nil, &usage) != nil {
		return nil
	}
	for _, m := range usage.Members {
		if m["user_id"] == plain[0] {
			return m
		}
	}
	return nil
}

// templateAgain is the command that sets a template as it was.
func templateAgain(was map[string]any) string {
	words := "yardmaster template set " + client.Word(object.Text(was["name"]))
	for _, in := range capability.One("template.set").Inputs() {
		v, known := was[in.Name]
		text, is := v.(string)
		if list, some := v.([]any); !known || v == nil || is && text == "" || in.Name == "name" || some && len(list) == 0 ||
			len(object.Map(v)) == 0 && object.Map(v) != nil {
			continue
		}
		if !is {
			b, err := object.Encode(v)
			if err != nil {
				continue
			}
			text = string(b)
		}
		words += " --" + strings.ReplaceAll(in.Name, "_", "-") + " " + client.Word(text)
	}
	return words
}
