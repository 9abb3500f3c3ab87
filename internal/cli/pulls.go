package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/act"
	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/change"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

func prCommands() []tree.Command {
	pr := noun.Called("pr")
	finding := []string{"yardmaster pr approve @last", "yardmaster pr approve acme/web#3"}
	// waiting is a command about what a question waits for: those are offered.
	waiting := func(c tree.Command) tree.Command {
		c.Picks = func(ctx context.Context, prompt, _ string) (string, error) {
			return noun.Called("question").Pick(ctx, prompt, "", nil)
		}
		c.Values = map[string]tree.Values{"ID": noun.NamesCalled("question")}
		return c
	}
	view := pr.ViewCommand("a pull request: its state, its description, its files, what it waits for",
		"yardmaster pr view acme/web#3", "yardmaster pr view", "yardmaster pr view --web my-branch")
	view.More = "In a clone, with no ID, it is that of the branch that is checked out."
	all := slices.Concat([]tree.Command{
		{Words: "pr list", Answers: "pr.all", Rows: true, Summary: "the pull requests, newest first: of the clone you are in, of --repo, else of all repositories",
			Define: definePRList, More: "--waiting lists the questions that wait for your yes or no. Their members are others: --json '*' shows them.",
			Values:   map[string]tree.Values{"state": tree.Fixed("opening", "open", "merged", "closed")},
			Examples: []string{"yardmaster pr list", "yardmaster pr list --waiting", "yardmaster pr list --repo acme/web --state merged"}},
		view,
		{Words: "pr diff", Answers: "pr.diff", Args: "ID [PATH]", Summary: "the lines that a pull request changes", Of: pr,
			Define: definePRDiff,
			More:   "A form for programs has the files that change; the lines of one file, where PATH names it."},
		{Words: "pr checks", Answers: "ci.runs", Rows: true, Args: "ID", Summary: "the checks of a pull request; it fails if its head has not passed them", Of: pr,
			Define: definePRChecks},
		{Words: "pr checkout", Args: "ID", Summary: "fetch its branch into the clone you are in, and check it out", Of: pr,
			Define: tree.Nothing(runPRCheckout), Examples: []string{"yardmaster pr checkout 3"}},
		waiting(tree.Command{Words: "pr approve", Answers: "pr.get", Args: "ID", Summary: "approve what is asked about a pull request's current head", Of: pr,
			Define: deciding("pr approve", "approve-pending", "Approved"), Examples: finding}),
		waiting(tree.Command{Words: "pr skip", Answers: "pr.get", Args: "ID", Summary: "decline it", Of: pr, Define: deciding("pr skip",
			"skip-pending", "Declined")}),
		{Words: "pr unapprove", Answers: "pr.get", Args: "ID", Summary: "take your approval back, until the merge begins", Of: pr,
			Define: deciding("pr unapprove", "unapprove", "Taken back")},
		{Words: "pr ask-again", Answers: "pr.get", Args: "ID", Summary: "have the question put again that was declined, or that nobody answered", Of: pr,
			Define: deciding("pr ask-again", "ask-again", "Asked again")},
		{Words: "pr merge", Answers: "pr.get", Args: "ID", Summary: "have a pull request's current head merged, asked about or not", Of: pr,
			Define: deciding("pr merge", "merge", "To be merged")},
		{Words: "pr open", Args: "ID", Summary: "open its page in a browser", Of: pr,
			Define: tree.Nothing(func(ctx context.Context, plain []string) error { return noun.OpenPage(ctx, pr, plain[0]) })},
		reviewsCommand(), findingsCommand(), queueCommand(), rulesCommand(),
	}, talkCommands(), act.Commands(
		act.Act{Words: "pr rearm", Args: "ID [REASON]…", Summary: "let agents repair it again whose rounds are spent",
			Op: "pr.rearm_babysit", Of: pr, Text: "reason",
			Done: "Agents repair it again.", Next: "yardmaster pr view {id} shows when.",
			Examples: []string{`yardmaster pr rearm @last "The runner was broken."`}},
		act.Act{Words: "finding dismiss", Args: "ID [REASON]…", Summary: "drop a finding of a pull request, or with --rule all of its kind at that text of the repository",
			Op: "review.dismiss", Plain: []string{"id", "reason"},
			Done: "Dismissed in this pull request alone.", Next: "yardmaster pr findings {pr_id} lists the others.",
			Says: func(o act.Occasion) (string, string) {
				if o.Answer["rule_id"] == nil {
					return "", ""
				}
				return "Dismissed; reviews of the repository do not name it again.", o.Next("Undo: yardmaster finding restore {rule_id} --repo {repo}")
			}},
		act.Act{Words: "finding restore", Args: "RULE", Summary: "let reviews name again what was dismissed; RULE is the id that finding rules shows",
			Op: "review.rule_delete", Plain: []string{"id"}, PerRepo: true, More: "What was dismissed stays so.",
			Done: "Reviews may name it again.", Next: "yardmaster finding rules{flags} lists what they do not name."},
	))
	for i := range all {
		switch all[i].Words {
		case "pr view", "pr diff", "pr checks", "pr open", "pr reviews", "pr findings", "pr comments":
			all[i].Here = noun.PullHere
		case "finding dismiss":
			all[i].Picks = pickFinding
		}
	}
	return all
}

// pickFinding has a person choose a finding of a pull request.
func pickFinding(ctx context.Context, prompt, repo string) (string, error) {
	id, err := noun.Called("pr").Pick(ctx, prompt+": of which pull request?", repo, nil)
	if err != nil {
		return "", err
	}
	of := noun.Finding()
	row, err := of.Choose(ctx, prompt, "", []capability.Given{{Name: "id", Text: id}}, noun.IsNotUnder("state", "dismissed", "fixed"))
	return of.ID(row), err
}

func definePRList(fl *flag.FlagSet) tree.Action {
	pr := noun.Called("pr")
	l := &noun.Listing{}
	l.Add(fl, pr)
	waiting := fl.Bool("waiting", false, "the questions that wait for your yes or no, in the place of pull requests")
	return func(ctx context.Context, _ []string) error {
		if *waiting {
			for _, name := range append(object.Sorted(l.Filters), append(object.Sorted(l.Others), "repo")...) {
				if fl.Changed(name) {
					return exit.Misused("give --waiting without --%s: it lists all that waits for you", name)
				}
			}
			return noun.Called("question").RunList(ctx, l)
		}
		if l.Repo == "" {
			if _, err := noun.RepoHere(ctx); err != nil {
				return pr.Wide().RunList(ctx, l)
			}
		}
		return pr.RunList(ctx, l)
	}
}

func definePRChecks(fl *flag.FlagSet) tree.Action {
	o := &output.Flags{}
	o.AddWatch(fl)
	return func(ctx context.Context, plain []string) error {
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		checks := noun.Called("check")
		state := ""
		err = o.Show(ctx, func() ([]byte, error) {
			var pr client.Pull
			if err := c.Call(ctx, http.MethodGet, "/v1/prs/"+url.PathEscape(plain[0]), nil, &pr); err != nil {
				return nil, err
			}
			state = pr.Checks
			rows, _, err := checks.Rows(ctx, c, []capability.Given{{Name: "filter", Text: "pr:" + plain[0]}}, noun.Searched)
			if err != nil {
				return nil, err
			}
			if len(rows) == 0 {
				return []byte("[]"), nil
			}
			return object.Encode(rows)
		}, func(w io.Writer, b []byte) error {
			if string(b) != "[]" {
				if err := checks.People(w, b); err != nil {
					return err
				}
			}
			text := "The checks of its head: " + strings.ReplaceAll(state, "_", " ") + "."
			if state == "none" {
				text = "Its head has no checks."
			}
			_, err := fmt.Fprintln(w, client.Inert(text))
			return err
		})
		switch { // by what was seen last
		case err != nil || state == "passed" || state == "none":
			return err
		case state == "pending":
			return errors.New("its head has not passed its checks yet: they go on; --watch shows them until you end it")
		}
		return errors.New("its head has not passed its checks; yardmaster check log ID prints one")
	}
}

// runPRCheckout fetches the branch of a pull request from the server, and checks it out.
func runPRCheckout(ctx context.Context, plain []string) error {
	l, err := signin.Login()
	if err != nil {
		return err
	}
	c := &client.Client{URL: l.URL, Token: l.Token}
	var pr struct {
		client.Pull
		HeadRef string `json:"head_ref"`
	}
	if err := c.Call(ctx, http.MethodGet, "/v1/prs/"+url.PathEscape(plain[0]), nil, &pr); err != nil {
		return err
	}
	repo, remote, err := noun.RemoteHere(ctx)
	switch {
	case err != nil:
		return exit.Misused("the folder is no clone of a repository of the server: git clone %s/git/%s.git", l.URL, pr.Repo)
	case repo != pr.Repo:
		return exit.Misused("the folder is a clone of %s, and the pull request is one of %s", repo, pr.Repo)
	}
	local := strings.TrimPrefix(pr.HeadRef, "refs/heads/")
	from, to := "refs/heads/"+local, "refs/remotes/"+remote+"/"+local
	if strings.HasPrefix(local, "refs/") { // of a fork
		local = fmt.Sprintf("pr/%d", pr.Number)
		from, to = pr.HeadRef, "refs/remotes/"+remote+"/"+local
	}
	if _, err := client.Git(ctx, ".", l.URL, l.Token, "fetch", "--quiet", "--", remote, "+"+from+":"+to); err != nil {
		return err
	}
	before, _ := client.Git(ctx, ".", "", "", "branch", "--show-current") // "" where none is checked out
	if _, err := client.Git(ctx, ".", "", "", "rev-parse", "--verify", "--quiet", "refs/heads/"+local); err == nil {
		if _, err := client.Git(ctx, ".", "", "", "checkout", "--quiet", local, "--"); err != nil {
			return err
		}
		if _, err := client.Git(ctx, ".", "", "", "merge", "--ff-only", "--quiet", to); err != nil {
			return fmt.Errorf("%s has commits of its own, and stays as it is: %w", local, err)
		}
	} else {
		// git tracks no branch by itself that the clone does not fetch otherwise.
		for _, args := range [][]string{{"checkout", "--quiet", "--no-track", "-b", local, to},
			{"config", "branch." + local + ".remote", remote}, {"config", "branch." + local + ".merge", from}} {
			if _, err := client.Git(ctx, ".", "", "", args...); err != nil {
				return err
			}
		}
	}
	screen.Say("%s is checked out, at %.10s.\n", local, pr.HeadSHA)
	if before != "" && before != local {
		screen.Afterword("Undo: git checkout " + client.Word(before))
	} else {
		screen.Afterword("See its lines with: yardmaster pr diff " + client.Word(pr.ID))
	}
	return nil
}

// reviewsCommand lists the reviews of a pull request, or with --repo those of a repository.
func reviewsCommand() tree.Command {
	of, pr := noun.Review(), noun.Called("pr")
	wide := *of
	wide.List, wide.PerRepo = "review.list", true
	wide.Columns = append([]table.Column{{"PULL REQUEST", "repo", table.Pull}, {"TITLE", "title", table.Title}}, of.Columns...)
	c := of.ListUnder("pr reviews", "the reviews by agents, newest first: of a pull request, or with --repo of a repository", pr, "id")
	c.Args, c.Of = "[ID]", nil
	c.Examples = []string{"yardmaster pr reviews acme/web#3", "yardmaster pr reviews --repo acme/web"}
	c.Define = func(fl *flag.FlagSet) tree.Action {
		l := &noun.Listing{Skip: "id"}
		l.Add(fl, of)
		fl.StringVar(&l.Repo, "repo", "", "`OWNER/NAME`: the newest 50 reviews of the repository")
		return func(ctx context.Context, plain []string) error {
			if l.Repo != "" {
				if len(plain) > 0 {
					return exit.Misuse("give ID or --repo, not both")
				}
				return wide.RunList(ctx, l)
			}
			asked := tree.Command{Words: "pr reviews", Args: "ID", Of: pr, Here: noun.PullHere}
			plain, err := asked.Checked(ctx, plain, "")
			if err != nil {
				return err
			}
			if err := of.Under(ctx, l, "id", plain[0]); err != nil {
				return err
			}
			pr.Seen(plain[0])
			return nil
		}
	}
	return c
}

func findingsCommand() tree.Command {
	return noun.Finding().ListUnder("pr findings", "what reviews have found, newest first", noun.Called("pr"), "id")
}

// rulesCommand lists what was dismissed in a repository.
func rulesCommand() tree.Command {
	n := noun.Rule()
	return n.NamedList("finding rules", "what reviews do not name any more in a repository, since it was dismissed with --rule")
}

// queueCommand shows the merge queues of a repository.
func queueCommand() tree.Command {
	return act.Act{Words: "pr queue", Summary: "the merge queue of a repository: what is tried together, and who waits", Op: "pr.queue",
		PerRepo: true, Shows: writeQueue, Examples: []string{"yardmaster pr queue --repo acme/web"}}.Command()
}

func writeQueue(w io.Writer, row map[string]any) error {
	batches, _ := row["batches"].([]any)
	waiting, _ := row["waiting"].([]any)
	if len(batches)+len(waiting) == 0 {
		_, err := fmt.Fprintln(w, "Nothing is in the merge queue.")
		return err
	}
	show := func(title string, rows []any, columns []table.Column) error {
		if len(rows) == 0 {
			return nil
		}
		fmt.Fprintln(w, title)
		return table.Write(w, columns, rows)
	}
	for _, b := range batches {
		members, _ := object.Map(b)["members"].([]any)
		var numbers []any
		for _, m := range members {
			numbers = append(numbers, "#"+object.Text(object.Map(m)["number"]))
		}
		object.Map(b)["members"] = numbers
	}
	if err := show("tried together", batches, []table.Column{{"STATE", "state", table.State},
		{"PULL REQUESTS", "members", table.Title}, {"INTO", "base_ref", table.Text}, {"TRY", "try", table.Number},
		{"AGE", "created_at", table.Age}}); err != nil {
		return err
	}
	return show("waiting", waiting, []table.Column{{"NUMBER", "number", table.Number}, {"STATE", "place.state", table.State},
		{"PLACE", "place.position", table.Number}, {"INTO", "base_ref", table.Text}, {"HEAD", "head_sha", table.SHA},
		{"SINCE", "place.at", table.Age}})
}

// definePRDiff is the diff for people, and for programs what the API answers of it.
func definePRDiff(fl *flag.FlagSet) tree.Action {
	people := change.DefineDiff(fl)
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		if !o.ForPrograms() {
			return people(ctx, plain)
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		path := ""
		if len(plain) > 1 {
			path = plain[1]
		}
		_, err = o.Answered(ctx, c, http.MethodGet, change.DiffAt(plain[0], path, fl.Lookup("since").Value.String()), nil, nil)
		return err
	}
}
