package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/machine"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

func repoCommands() []tree.Command {
	repo := noun.Called("repo")
	set := act.Commands(
		act.Act{Words: "repo enable", Args: "OWNER/NAME", Summary: "let agents work in a repository",
			Op: "project.update", Of: repo, Fixed: map[string]string{"enabled": "true"},
			Done: "Agents work in {id}.", Next: "Undo: yardmaster repo remove {id}"},
		act.Act{Words: "repo remove", Args: "OWNER/NAME",
			Summary: "take a repository out of use: its tasks wait, and new ones are refused", Op: "project.update", Of: repo,
			More:  "What is in it stays, at its code host and here.",
			Fixed: map[string]string{"enabled": "false"},
			Done:  "No agent works in {id} any more; nothing of it is deleted.", Next: "Undo: yardmaster repo enable {id}"},
		act.Act{Words: "repo setup", Args: "OWNER/NAME",
			Summary: "send an agent to give a repository scripts, tools and notes for agents", Op: "project.setup", Of: repo,
			Next: "Follow it with: yardmaster task watch {task_id}"},
	)
	set = append(set, tree.Command{Words: "repo settings", Answers: "project.settings", Args: "OWNER/NAME", Of: repo,
		Values: map[string]tree.Values{}, Define: defineRepoSettings,
		Summary: "how a repository is set, and what each switch does; a flag turns one, or chooses the default branch",
		Examples: []string{"yardmaster repo settings acme/web", "yardmaster repo settings acme/web --ai-first",
			"yardmaster repo settings acme/web --default-branch main"}}, tree.Command{Words: "repo policy", Answers: "project.policy_get", Args: "OWNER/NAME", Of: repo,
		Values: map[string]tree.Values{}, Define: defineRepoPolicy,
		Summary:  "the policy in force; with --file, whether a policy file is a good one",
		Examples: []string{"yardmaster repo policy acme/web", "yardmaster repo policy acme/web --file .svc/policy.yml"}})
	set = append(set, repoAsk(), repoAnswers())
	for i := range set {
		set[i].Values["OWNER/NAME"] = noun.NamesOf(repo)
	}
	view := repo.ViewCommand("one repository", "yardmaster repo view acme/web")
	view.Args = "OWNER/NAME"
	return append([]tree.Command{
		{Words: "repo add", Answers: "project.get", Args: "PATH|URL", Summary: "put a repository on the server", Define: defineRepoAdd,
			Examples: []string{"yardmaster repo add ~/src/project", "yardmaster repo add https://example.com/o/calc.git --name acme/calc"}},
		{Words: "repo create", Answers: "project.create", Args: "NAME|OWNER/NAME",
			Summary: "make a repository with its first files, and send an agent to set it up", Define: defineRepoCreate,
			Examples: []string{`yardmaster repo create web --stack "Go and SQLite"`}},
		repo.ListCommand("the repositories"), view,
	}, set...)
}

func boxCommands() []tree.Command {
	boxes := noun.Called("box")
	lists := boxes.ListCommand("the boxes: presence, load, agents, and what is wrong with an unfit one")
	lists.Define = func(fl *flag.FlagSet) tree.Action {
		boxes.AddValues(lists.Values)
		l := &noun.Listing{}
		l.Add(fl, boxes)
		return func(ctx context.Context, plain []string) error {
			if l.ForPrograms() || l.Watch || fl.NFlag() > 0 {
				return boxes.RunList(ctx, l)
			}
			return machine.ListBoxes(ctx)
		}
	}
	return append([]tree.Command{
		{Words: "box join", Summary: "enroll this machine, and run as a box", Define: machine.BoxJoin,
			Examples: []string{"yardmaster box join", "yardmaster box join --slots 4 --name builder"}},
		{Words: "box add", Answers: "box.add_ssh", Summary: "have the server enroll a machine over SSH", Define: machine.BoxAdd,
			Examples: []string{"yardmaster box add --ssh yard@build-3.example.com"}},
		{Words: "box run", Summary: "run as the box this machine was enrolled as", Define: machine.BoxRun},
		lists,
		boxes.ViewCommand("one box"),
		topCommand(),
		{Words: "box agents", Summary: "the coding agents of this machine's box, and what is missing", Define: machine.Agents},
		{Words: "box agents install", Args: "NAME",
			Summary: "fetch what drives a coding agent from npm into this machine's box", Define: machine.InstallAgents},
		{Words: "box update", Answers: "box.update",
			Summary:  "bring the boxes to a release: one first, then in waves; again joins the rollout under way",
			Define:   machine.BoxUpdate,
			Examples: []string{"yardmaster box update --watch", "yardmaster box update --channel stable --soak 1h"}},
		{Words: "box rollout", Answers: "box.rollout", Summary: "how the newest rollout of a release goes, box by box",
			Define:   machine.BoxRollout,
			Examples: []string{"yardmaster box rollout --watch"}},
	}, act.Commands(
		act.Act{Words: "box rollout cancel", Summary: "end the rollout under way; boxes that run the release keep it", Op: "box.rollout_cancel",
			Done: "It has ended.", Next: "yardmaster box update starts another.", Examples: []string{"yardmaster box rollout cancel"}},
		act.Act{Words: "box pins", Summary: "which channels boxes follow, and which take no updates", Op: "box.pins",
			Examples: []string{"yardmaster box pins"}},
		act.Act{Words: "box pin", Args: "SCOPE", Summary: "say which channel the account, a label or a box follows, or that it takes no updates",
			Op: "box.pin", Plain: []string{"scope"}, Done: "It is said.",
			Next: "yardmaster box pins shows what is said; without --channel and --pinned, nothing is any more.",
			Examples: []string{"yardmaster box pin account --channel stable",
				"yardmaster box pin label --ref zone=eu --pinned --why audited"}},
		act.Act{Words: "box drain", Args: "ID", Summary: "give back its work, saved, and take none", Op: "box.drain",
			Of: boxes, Fixed: map[string]string{"resume": "false"},
			Done: "It takes no more work.", Next: "Undo: yardmaster box resume {id}"},
		act.Act{Words: "box resume", Args: "ID", Summary: "let it take work again", Op: "box.drain", Of: boxes,
			Fixed: map[string]string{"resume": "true"},
			Done:  "It takes work again.", Next: "Undo: yardmaster box drain {id}"},
		act.Act{Words: "box owner", Args: "ID TARGET", Summary: "choose whose work it takes: org, shared, or user with --member",
			Op: "box.set_owner", Of: boxes, Plain: []string{"target"}, MemberFlag: "owner_id",
			Before: "box.get", Done: "Its work is that of: {owner.target}.", Next: "Undo: yardmaster box owner {id} {before.owner.target}",
			Says: func(o act.Occasion) (string, string) {
				if o.Answer["consent"] == "pending" {
					return o.Done("They were asked, and nothing has changed: they agree in the dashboard, under Settings, You."), ""
				}
				if object.Map(o.Before["owner"])["target"] != "user" {
					return "", ""
				}
				return "", o.Next("Undo: yardmaster box owner {id} user --member {before.owner.id}")
			},
			Examples: []string{"yardmaster box owner builder org", "yardmaster box owner builder user --member ada"}},
		act.Act{Words: "box mine", Summary: "the boxes that work for you alone, in which accounts, and those that you are asked to own",
			Op: "self.runner_list", Examples: []string{"yardmaster box mine"}},
		act.Act{Words: "box mine withdraw", Args: "BOX-ID ACCOUNT-ID", Summary: "take back that a box works for you there, or decline to own it",
			Op: "self.runner_withdraw", Plain: []string{"id", "account_id"},
			Done: "It takes nothing of yours there. To agree again takes a browser: Settings, You.", Next: "What is left: yardmaster box mine",
			Examples: []string{"yardmaster box mine withdraw 01a22378-e54e-7d85-9846-37f058c0da96 01a22379-8496-7c0d-81d8-905bae8229d9"}},
		act.Act{Words: "box ssh-key", Summary: "the public key by which the server proves itself to machines that it is to enroll over SSH",
			Op: "box.ssh_key", Examples: []string{"yardmaster box ssh-key", "yardmaster box ssh-key --json authorized_keys"}},
		act.Act{Words: "box joins", Summary: "the machines that the server was to enroll over SSH, and how it went",
			Op: "box.ssh_joins", Examples: []string{"yardmaster box joins"}},
		act.Act{Words: "box decommission", Args: "ID", Summary: "drain it, and then revoke it and take it off the list",
			Op: "box.decommission", Of: boxes,
			Done: "It is revoked once it has handed its work back.", Next: "Until then, undo: yardmaster box resume {id}"},
		act.Act{Words: "box revoke", Args: "ID", Summary: "cut it off for good, at once", Op: "box.revoke", Of: boxes,
			Done: "It is cut off; what it was doing begins again elsewhere.",
			Next: "yardmaster box join on the machine enrolls it anew."},
		act.Act{Words: "box enroll", Summary: "mint a one-time enrollment token for another machine, and the line that joins it", Op: "box.add",
			Next: "Run the line of join on that machine, within the hour. Then it is in: yardmaster box list"},
	)...)
}

func defineOpen(fl *flag.FlagSet) tree.Action {
	show := fl.Bool("print", false, "print the address instead of opening it")
	return func(ctx context.Context, plain []string) error {
		l, err := client.LoadLogin(os.Getenv, signin.Context, nil) // a token is not needed
		if l.URL == "" {
			return err
		}
		base := l.URL
		address := base + "/ui/"
		if len(plain) > 0 {
			var of *noun.Noun
			for _, n := range noun.All() {
				if n.Name == plain[0] && n.Page != "" {
					of = n
				}
			}
			if of == nil {
				return exit.Misused("there are no pages of %q, but of %s", plain[0], strings.Join(noun.PageNouns(ctx, nil, ""), ", "))
			}
			if len(plain) > 1 {
				id, err := of.Find(ctx, plain[1])
				if err != nil {
					return err
				}
				if address, err = of.AddressOf(ctx, id); err != nil {
					return err
				}
			} else {
				address += strings.Replace(of.Page, "issues", "repos", 1)
			}
		}
		if *show {
			fmt.Println(client.Inert(address))
			return nil
		}
		return noun.Browse(ctx, address)
	}
}

// repoID is the id of a repository; its name if it cannot be read.
func repoID(ctx context.Context, full string) string {
	owner, repo, _ := strings.Cut(full, "/")
	c, err := signin.Connect()
	if err != nil {
		return full
	}
	var of struct {
		ID string `json:"id"`
	}
	if c.Call(ctx, http.MethodGet, "/v1/repos/"+url.PathEscape(owner)+"/"+url.PathEscape(repo), nil, &of) != nil || of.ID == "" {
		return full
	}
	return of.ID
}
