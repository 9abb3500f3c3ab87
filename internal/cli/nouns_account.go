package cli

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/app"
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
	}, commandsOf(
		act{words: "template set", args: "NAME", summary: "create or fully replace a template", op: "template.set", of: template,
			more: "What is left out gets its default.", done: "The template {id} is set.",
			next:   "yardmaster template view {id} shows all of it.",
			before: "template.get", says: func(o occasion) (string, string) {
				switch {
				case o.answer["created_at"] != nil && o.answer["created_at"] == o.answer["updated_at"]: // there was none of the account
					return "", o.next("Undo: yardmaster template delete {id}")
				case o.before == nil || o.before["created_at"] == nil:
					return "", ""
				}
				return o.done("The template {id} is set, in the place of the one before."), "Undo: " + templateAgain(o.before)
			},
			examples: []string{"yardmaster template set codex --agent codex --model gpt-5"}},
		act{words: "template delete", args: "NAME", summary: "delete a template", op: "template.delete", of: template,
			done:   "The template {id} is gone.",
			next:   "yardmaster template set {id} makes it anew.",
			before: "template.get", says: func(o occasion) (string, string) {
				if o.before == nil {
					return "", ""
				}
				return "", "Undo: " + templateAgain(o.before)
			}},
		act{words: "token create", summary: "mint a token, which is shown once", op: "token.mint", made: token,
			done: "{token}", next: "Undo: yardmaster token revoke {id}",
			examples: []string{"yardmaster token create --name ci --scopes read:tasks --expires-in-days 30"}},
		act{words: "token rename", args: "ID NAME", summary: "change its name", op: "token.rename", of: token,
			plain: []string{"name"}, done: "It is called {1} now.",
			next: "yardmaster token list shows all.", earlier: rowBefore("token"), says: func(o occasion) (string, string) {
				if o.before["name"] == nil {
					return "", ""
				}
				return "", o.next("Undo: yardmaster token rename {id} {before.name}")
			}},
		act{words: "token revoke", args: "ID", summary: "end a token", op: "token.revoke", of: token,
			done: "The token {id} is good for nothing any more.", earlier: rowBefore("token"),
			next: "yardmaster token create makes another."},
	), []tree.Command{byAddress(
		act{words: "member invite", summary: "invite a registered user, or an address", op: "member.invite",
			says: func(o occasion) (string, string) {
				if login := object.Text(object.Map(o.answer["member"])["login"]); login != "" {
					return o.done("{member.login} belongs to the account now, as {member.role}."),
						o.next("Undo: yardmaster member remove {member.login}")
				}
				if login := object.Text(object.Map(o.answer["invitation"])["login"]); login != "" {
					return o.done("{invitation.login} is invited, as {invitation.role}, if anybody has that login."),
						o.next("They see it when they sign in, and accept. Undo: yardmaster invitation revoke {invitation.id}")
				}
				link := ""
				if o.answer["link"] != nil {
					link = "\nTheir link, which works once: {link}"
				}
				return o.done("{invitation.email} is invited, as {invitation.role}.") + o.done(link),
					o.next("Where the server sends no mail, send it. Undo: yardmaster invitation revoke {invitation.id}")
			},
			next:     "yardmaster member list shows who belongs to the account.",
			examples: []string{"yardmaster member invite bob@example.com --role member", "yardmaster member invite --login bob"}},
	)}, commandsOf(
		act{words: "member role", args: "MEMBER ROLE", summary: "change what a member may do", op: "member.set_role",
			of: member, plain: []string{"role"},
			done: "Their role is {1} now.", next: "yardmaster member list shows all.",
			earlier: rowBefore("member"), says: func(o occasion) (string, string) {
				if o.before == nil || o.before["role"] == o.plain[1] {
					return "", ""
				}
				return o.done("{before.login} is {1} now."), o.next("Undo: yardmaster member role {before.login} {before.role}")
			},
			examples: []string{"yardmaster member role bob admin"}},
		act{words: "member remove", args: "MEMBER", summary: "remove a member; their tokens of the account stop",
			op: "member.remove", of: member,
			done: "They are no member any more.", next: "yardmaster member invite adds them again.",
			earlier: rowBefore("member"), says: func(o occasion) (string, string) {
				if o.before == nil {
					return "", ""
				}
				return o.done("{before.login} is no member any more."),
					o.next("Undo: yardmaster member invite --login {before.login} --role {before.role}")
			}},
	), []tree.Command{{Words: "member leave", Summary: "open the page on which you leave the account; your tokens of it stop then",
		Define: tree.Nothing(runMemberLeave),
		More:   "A token cannot leave: it takes you, signed in in a browser. Who manages the account can have you back."},
	}, commandsOf(
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
		act{words: "webhook redeliver", args: "ID", summary: "send the event of an attempt once more", op: "webhook.redeliver",
			of: noun.Attempt(), done: "It is sent again.", next: "yardmaster webhook deliveries shows what becomes of it.",
			examples: []string{"yardmaster webhook redeliver @last"}},
		act{words: "source connect", summary: "connect a system whose deliveries become asks",
			op: "integration.source_connect", made: source,
			next:     "Undo: yardmaster source disconnect {id}",
			examples: []string{"yardmaster source connect --name errors --kind sentry --projects front-end=acme/web"}},
		act{words: "source update", args: "ID", summary: "change what is done with its deliveries",
			op: "integration.update", of: source, done: "Changed.",
			next: "yardmaster source view {id} shows it."},
		act{words: "source rotate", args: "ID", summary: "give it another secret; the one before is good for 24 hours more",
			op: "integration.rotate", of: source, secretFile: "secret",
			more: "The server makes one, or takes with --secret-file the one that the other system has made.",
			next: "yardmaster source deliveries {id} shows what comes."},
		act{words: "source disconnect", args: "ID", summary: "disconnect a system", op: "integration.disconnect",
			of: source, done: "Disconnected.",
			next: "yardmaster source connect makes it anew, with another secret."},
		act{words: "budget view", summary: "what the account may spend in a month, and has spent in this one", op: "billing.spend_cap_get",
			plainly: plainBudget,
			next:    "yardmaster budget usage has it member by member."},
		act{words: "budget usage", summary: "what models cost in a month, member by member", op: "billing.usage",
			plainly: plainUsage, tables: usageTables,
			examples: []string{"yardmaster budget usage --month 2026-11"}},
		act{words: "budget set", args: "USD",
			summary: "cap what the account may spend in a month; null takes the cap away", op: "billing.spend_cap_set",
			plain: []string{"usd"}, done: "The cap of a month, in US dollars: {0}.",
			next: "Undo: yardmaster budget set {before.usd}", before: "billing.spend_cap_get", learn: learnUnpriced, says: capSays,
			examples: []string{"yardmaster budget set 250"}},
		act{words: "budget member", args: "MEMBER USD", summary: "cap what one member's work may cost in a month",
			op: "billing.member_cap_set", of: member,
			plain: []string{"usd"}, done: "The cap of a month, in US dollars: {1}.", next: "Undo: yardmaster budget member {0} null",
			earlier: capBefore, says: func(o occasion) (string, string) {
				if o.before["cap_usd"] == nil {
					return "", ""
				}
				return "", o.next("Undo: yardmaster budget member {0} {before.cap_usd}")
			}},
		act{words: "budget task", args: "ID USD", summary: "give a task another budget; null takes it away",
			op: "task.budget_set", of: noun.Called("task"),
			plain: []string{"usd"}, done: "What the task may spend, in US dollars: {1}.",
			next: "Undo: yardmaster budget task {0} {before.budget.usd}", before: "task.run_status"},
		act{words: "budget plan", args: "ID USD",
			summary: "cap what a plan's tasks may spend together; null takes the cap away", op: "plan.budget_set",
			of: noun.Called("plan"), plain: []string{"usd"}, done: "What the plan may spend, in US dollars: {1}.",
			next: "Undo: yardmaster budget plan {0} {before.budget_usd}", before: "plan.get"},
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

// inSeconds tells whether an input of that description is a number of seconds.
func inSeconds(doc string) bool { return strings.HasPrefix(doc, "seconds") }

// seconds is an input that is a number of seconds for a length of time such as 30m or 7d; any other input as it is.
func seconds(o *app.Op, name, text string) string {
	is := false
	for _, in := range o.Inputs() {
		is = is || in.Name == name && inSeconds(in.Doc)
	}
	if !is {
		return text
	}
	if days, whole := strings.CutSuffix(text, "d"); whole {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 10_000 {
			text = strconv.Itoa(24*n) + "h"
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d%time.Second != 0 {
		return text
	}
	return strconv.Itoa(int(d / time.Second))
}

// byAddress is the command of an act that takes an address as its argument, in the place of --email.
func byAddress(a act) tree.Command {
	c := a.command()
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
	set := eitherSecret(act{words: "secret set", args: "NAME",
		summary: "keep a secret (read from standard input), in the place of what had its name",
		secret:  "value", prompt: "Value", plain: []string{"name"},
		done: "{0} is kept; agents get it from their next run on.", next: "Undo: yardmaster secret delete {0}{flags}",
		says: func(o occasion) (string, string) {
			if o.before == nil {
				return "", ""
			}
			return o.done("{0} is kept, in the place of the value before; agents get it from their next run on."),
				o.next("The value before is gone: no command brings it back. yardmaster secret delete {0}{flags} takes this one away.")
		},
		examples: []string{"yardmaster secret set NPM_TOKEN < token.txt",
			"yardmaster secret set NPM_TOKEN --repo acme/web --delivery broker --hosts packages.example.com"}},
		"secret.set", "project_secret.set")
	set.Values["delivery"] = tree.Fixed("env", "broker")
	gone := eitherSecret(act{words: "secret delete", args: "NAME", summary: "delete a secret",
		plain: []string{"name"}, done: "{0} is deleted.",
		next: "The value is gone: no command brings it back. yardmaster secret set {0}{flags} keeps another.", examples: []string{"yardmaster secret delete NPM_TOKEN"}},
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
func eitherSecret(a act, account, ofRepo string) tree.Command {
	a.op, a.place = account, " among those of the account; --repo OWNER/NAME names the repository of one"
	c := a.command()
	c.Define = func(fl *flag.FlagSet) tree.Action {
		var environment *flag.Flag
		a.earlier = func(ctx context.Context, c *client.Client, plain []string) any {
			return secretBefore(ctx, c, noun.Called("secret"), nil, plain[0], environment)
		}
		inAccount := a.define(fl)
		environment = fl.Lookup("environment")
		b := a
		b.op, b.perRepo, b.place = ofRepo, true, " in that repository"
		own := flag.NewFlagSet("", flag.ContinueOnError)
		b.earlier = func(ctx context.Context, c *client.Client, plain []string) any {
			in, err := noun.InRepo(ctx, own.Lookup("repo").Value.String(), nil)
			if err != nil {
				return nil
			}
			return secretBefore(ctx, c, noun.Called("repo-secret"), in, plain[0], environment)
		}
		withinRepo := b.define(own)
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
