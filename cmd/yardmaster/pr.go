package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

func pullNoun() *noun {
	return &noun{name: "pr", list: "pr.list", get: "pr.get", names: []string{"head_ref"}, label: "title", page: "prs", perRepo: true,
		everywhere: "pr.all", show: viewPull,
		columns: []column{{"NUMBER", "number", asNumber}, {"STATE", "state", asState}, {"AGE", "created_at", asAge},
			{"CHECKS", "checks", asState}, {"REVIEW", "review.verdict|review.state", asState}, {"LINES", "size", asSize},
			{"BRANCH", "head_ref", asTitle}, {"TITLE", "title", asTitle}, {"ID", "id", asID}}}
}

// questionNoun are the pull requests about which a question waits.
func questionNoun() *noun {
	return &noun{name: "question", list: "pr.pending_approvals", key: "pr_id", label: "title",
		none: "Nothing waits for a yes or no. What waits for something else says so in `yardmaster task list`.",
		columns: []column{{"ID", "pr_id", asID}, {"PULL REQUEST", "repo", asPull}, {"ASKED", "kind", asText}, {"HEAD", "head_sha", asSHA},
			{"CHECKS", "checks", asState}, {"REVIEW", "review.verdict|review.state", asState}, {"LINES", "size", asSize},
			{"AGE", "requested_at", asAge}, {"TITLE", "title", asTitle}}}
}

func prCommands() []command {
	pr := nounCalled("pr")
	finding := []string{"yardmaster pr approve @last", "yardmaster pr approve acme/web#3"}
	return slices.Concat([]command{
		{words: "pr list", summary: "the pull requests that wait for a decision; with --repo those of a repository", define: definePRList,
			values:   map[string]values{"state": fixed("opening", "open", "merged", "closed")},
			examples: []string{"yardmaster pr list", "yardmaster pr list --repo acme/web --state merged"}},
		pr.viewCommand("a pull request: its state, its description, its files, what it waits for",
			"yardmaster pr view acme/web#3", "yardmaster pr view --web my-branch"),
		{words: "pr diff", args: "ID [PATH]", summary: "the lines that a pull request changes", of: pr, define: definePRDiff},
		{words: "pr approve", args: "ID", summary: "approve what is asked about a pull request's current head", of: pr,
			define: deciding("pr approve", "approve-pending", "Approved"), examples: finding},
		{words: "pr skip", args: "ID", summary: "decline it", of: pr, define: deciding("pr skip", "skip-pending", "Declined")},
		{words: "pr ask-again", args: "ID", summary: "have the question put again that was declined, or that nobody answered", of: pr,
			define: deciding("pr ask-again", "ask-again", "Asked again")},
		{words: "pr merge", args: "ID", summary: "have a pull request's current head merged, asked about or not", of: pr,
			define: deciding("pr merge", "merge", "To be merged")},
		{words: "pr open", args: "ID", summary: "open its page in a browser", of: pr,
			define: nothing(func(ctx context.Context, plain []string) error { return openPage(ctx, pr, plain[0]) })},
	}, commandsOf(
		act{words: "pr rearm", args: "ID REASON…", summary: "let agents repair it again whose rounds are spent",
			op: "pr.rearm_babysit", of: pr, text: "reason",
			done: "Agents repair it again.", next: "yardmaster pr view {id} shows when.",
			examples: []string{`yardmaster pr rearm @last "The runner was broken."`}},
		act{words: "pr reviews", args: "ID", summary: "the reviews by agents, newest first", op: "review.status", of: pr},
		act{words: "pr review", args: "ID", summary: "have the latest review run again on the same commit",
			op: "review.rerun", of: pr, done: "It is reviewed again.",
			next: "yardmaster pr reviews {id} shows the outcome."},
		act{words: "pr findings", args: "ID", summary: "what reviews have found, newest first", op: "review.findings", of: pr},
		act{words: "finding dismiss", args: "ID [REASON]…", summary: "say that a finding is none",
			op: "review.dismiss", plain: []string{"id", "reason"},
			done: "Dismissed; reviews do not name it again.",
			next: "Undo: yardmaster call review.rules lists the rule, review.rule_delete takes it back."},
	))
}

func definePRList(fl *flag.FlagSet) action {
	pr := nounCalled("pr")
	l := &listing{}
	l.add(fl, pr)
	return func(ctx context.Context, _ []string) error {
		narrowed := false
		for key := range l.filters {
			narrowed = narrowed || fl.Changed(key)
		}
		if l.repo == "" && narrowed {
			if _, err := repoHere(ctx); err != nil {
				return pr.wide().runList(ctx, l)
			}
		}
		if l.repo != "" || narrowed {
			return pr.runList(ctx, l)
		}
		return nounCalled("question").runList(ctx, l)
	}
}

// deciding defines a command that decides about the current head of a pull request.
func deciding(name, verb, done string) func(*flag.FlagSet) action {
	return func(fl *flag.FlagSet) action {
		question := ""
		if verb == "approve-pending" || verb == "merge" {
			fl.StringVar(&question, "question", "", "the `ID` of the question that you read; wanted where it is about what is protected")
		}
		return func(ctx context.Context, plain []string) error {
			return decide(ctx, name, plain[0], verb, question, done)
		}
	}
}

func decide(ctx context.Context, name, id, verb, question, done string) error {
	c, err := connect()
	if err != nil {
		return err
	}
	pr, err := c.Decide(ctx, id, verb, question)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Slug() == "question_changed" {
		return fmt.Errorf("%w\nIt is asked: %s\nIf that is what you mean: yardmaster %s %s --question %s", err,
			client.Inert(p.Question), name, client.Word(id), client.Word(p.ActionID))
	}
	if err != nil {
		return err
	}
	say("%s: %s#%d at %.10s.\n", done, pr.Repo, pr.Number, pr.HeadSHA)
	if asked := pr.Warning(); asked != "" {
		fmt.Println("It was asked:", client.Inert(asked))
	}
	if then := afterwards[verb]; then != "" {
		fmt.Println(strings.ReplaceAll(then, "{id}", client.Inert(id)))
	}
	return nil
}

// afterwards say how a decision is taken back, or what comes next.
var afterwards = map[string]string{
	"approve-pending": "It merges when nothing else is in its way: yardmaster pr view {id}",
	"merge":           "See how far it is with: yardmaster pr view {id}",
	"skip-pending":    "Undo: yardmaster pr ask-again {id}",
	"ask-again":       "Answer with: yardmaster pr approve {id}, or yardmaster pr skip {id}",
}

// viewPull writes a pull request for people.
func viewPull(ctx context.Context, c *client.Client, w io.Writer, b []byte) error {
	var pr struct {
		client.Pull
		ID        string    `json:"id"`
		Title     string    `json:"title"`
		Body      string    `json:"body"`
		URL       string    `json:"url"`
		HeadRef   string    `json:"head_ref"`
		BaseRef   string    `json:"base_ref"`
		Mergeable string    `json:"mergeable"`
		TaskID    *string   `json:"task_id"`
		CreatedAt time.Time `json:"created_at"`
		MergedBy  *string   `json:"merged_by"`
		ClosedWhy *string   `json:"closed_why"`
		Babysit   struct {
			NextRoundAt *time.Time `json:"next_round_at"`
			TaskID      *string    `json:"task_id"`
		} `json:"babysit"`
		Review struct {
			State   string  `json:"state"`
			Verdict *string `json:"verdict"`
			Holding int     `json:"holding"`
		} `json:"review"`
		Queue *queuePlace `json:"queue"`
		Needs *struct {
			ClearsWhen string `json:"clears_when"`
			client.Clear
		} `json:"needs_person"`
	}
	if err := json.Unmarshal(b, &pr); err != nil {
		return err
	}
	var d diff
	if err := c.Call(ctx, http.MethodGet, "/v1/prs/"+url.PathEscape(pr.ID)+"/diff", nil, &d); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s#%d  %s\n", pr.Repo, pr.Number, client.Inert(pr.Title))
	line := func(name, value string) { fmt.Fprintf(w, "  %-9s %s\n", name, client.Inert(value)) }
	state := pr.State
	switch {
	case pr.MergedBy != nil:
		state += " by " + *pr.MergedBy
	case pr.ClosedWhy != nil:
		state += ": " + strings.ReplaceAll(*pr.ClosedWhy, "_", " ")
	}
	line("state", state)
	line("branch", fmt.Sprintf("%s at %.10s, into %s (%s)", pr.HeadRef, pr.HeadSHA, pr.BaseRef, pr.Mergeable))
	line("checks", pr.Checks)
	if r := pr.Review; r.State != "none" {
		text := r.State
		switch {
		case r.Holding > 0:
			text = fmt.Sprintf("%s; %d of its findings hold the merge", r.State, r.Holding)
		case r.Verdict != nil:
			text = "nothing holds the merge"
		}
		line("review", text)
	}
	switch {
	case pr.Babysit.TaskID != nil:
		line("repair", "by task "+*pr.Babysit.TaskID)
	case pr.Babysit.NextRoundAt != nil:
		line("repair", "agents begin the next round at "+pr.Babysit.NextRoundAt.Local().Format(time.DateTime))
	}
	if pr.TaskID != nil {
		line("task", *pr.TaskID)
	}
	line("opened", pr.CreatedAt.Local().Format(time.DateTime))
	if q := pr.Queue; q != nil {
		line("queue", q.words())
	}
	if pr.Needs != nil {
		line("waits", "until "+pr.Needs.ClearsWhen)
	}
	if a := pr.PendingAction; a != nil && a.RetryAt != nil && a.Error != nil {
		line("merge", "is tried again at "+a.RetryAt.Local().Format(time.DateTime)+": "+*a.Error)
	}
	if asked := pr.Warning(); asked != "" {
		line("asked", asked)
	}
	if body := strings.TrimSpace(pr.Body); body != "" {
		fmt.Fprintln(w)
		paragraph(w, body)
	}
	fmt.Fprintln(w)
	d.list(w)
	fmt.Fprintf(w, "\nSee the lines with: yardmaster pr diff %s\n", client.Word(pr.ID))
	if pr.Needs != nil {
		if command := pr.Needs.Command(); command != "" {
			fmt.Fprintf(w, "Then: %s\n", command)
		}
	}
	return nil
}

// queuePlace is the place of a pull request in a merge queue.
type queuePlace struct {
	Queue    string    `json:"queue"`
	State    string    `json:"state"`
	Position int       `json:"position"`
	At       time.Time `json:"at"`
}

// words are the place for people.
func (q queuePlace) words() string {
	of := "of this server"
	if q.Queue == "host" {
		of = "of the code host"
	}
	at := ""
	if q.Position > 0 {
		at = fmt.Sprintf(", position %d", q.Position)
	}
	return fmt.Sprintf("%s in the merge queue %s%s, since %s", q.State, of, at, q.At.Local().Format(time.DateTime))
}

// diff has the members of a pull request's diff that the command line uses.
type diff struct {
	From      string        `json:"from_sha"`
	Files     []changedFile `json:"files"`
	More      int           `json:"more"`
	Additions int           `json:"additions"`
	Deletions int           `json:"deletions"`
	File      *struct {
		changedFile
		Hunks []struct {
			OldStart int      `json:"old_start"`
			OldLines int      `json:"old_lines"`
			NewStart int      `json:"new_start"`
			NewLines int      `json:"new_lines"`
			Section  string   `json:"section"`
			Lines    []string `json:"lines"`
		} `json:"hunks"`
		Cut bool `json:"cut"`
	} `json:"file"`
}

type changedFile struct {
	Path      string  `json:"path"`
	Was       *string `json:"was"`
	Kind      string  `json:"kind"`
	Type      string  `json:"type"`
	WasType   *string `json:"was_type"`
	Binary    bool    `json:"binary"`
	Additions int     `json:"additions"`
	Deletions int     `json:"deletions"`
}

func (f changedFile) name() string {
	name := f.Path
	if f.Was != nil {
		name = *f.Was + " -> " + f.Path
	}
	switch {
	case f.WasType != nil:
		name += fmt.Sprintf(" (%s -> %s)", *f.WasType, f.Type)
	case f.Type != "file":
		name += " (" + f.Type + ")"
	}
	return name
}

func (d *diff) list(w io.Writer) {
	for _, f := range d.Files {
		counts := fmt.Sprintf("+%d -%d", f.Additions, f.Deletions)
		if f.Binary {
			counts = "binary"
		}
		fmt.Fprintf(w, "  %-12s %12s  %s\n", f.Kind, counts, client.Inert(f.name()))
	}
	if d.More > 0 {
		fmt.Fprintf(w, "  and %d files more\n", d.More)
	}
	files := "files"
	if len(d.Files)+d.More == 1 {
		files = "file"
	}
	fmt.Fprintf(w, "%d %s, +%d -%d\n", len(d.Files)+d.More, files, d.Additions, d.Deletions)
}

func definePRDiff(fl *flag.FlagSet) action {
	since := fl.String("since", "",
		"show what changed since this commit, `SHA`, say the head that you looked at last; its first 7 digits will do")
	return func(ctx context.Context, plain []string) error {
		c, err := connect()
		if err != nil {
			return err
		}
		return showDiff(ctx, c, plain, *since)
	}
}

func showDiff(ctx context.Context, c *client.Client, plain []string, since string) error {
	read := func(path string) (d diff, err error) {
		q := url.Values{}
		if since != "" {
			q.Set("since_sha", since)
		}
		if path != "" {
			q.Set("path", path)
		}
		return d, c.Call(ctx, http.MethodGet, "/v1/prs/"+url.PathEscape(plain[0])+"/diff?"+q.Encode(), nil, &d)
	}
	if len(plain) > 1 {
		d, err := read(plain[1])
		if err == nil && d.File == nil {
			return fmt.Errorf("the pull request does not change %s; yardmaster pr view %s lists what it does", plain[1], client.Word(plain[0]))
		}
		if err == nil {
			d.print()
		}
		return err
	}
	all, err := read("")
	if err != nil {
		return err
	}
	if since != "" {
		since = all.From // the resolved commit, for all files
	}
	shown := all.Files[:min(len(all.Files), mostShown)]
	for _, f := range shown {
		d, err := read(f.Path)
		if err != nil {
			return err
		}
		if d.File != nil {
			d.print()
		}
	}
	if more := all.More + len(all.Files) - len(shown); more > 0 {
		fmt.Printf("%d files more are not shown; name one: yardmaster pr diff %s PATH\n", more, client.Word(plain[0]))
	}
	return nil
}

// mostShown is the largest number of files that are shown unasked: each is a call.
const mostShown = 200

// print writes the lines of a file in the form of git, without control characters.
func (d *diff) print() {
	f, s := d.File, screen()
	old, now := "a/"+f.Path, "b/"+f.Path
	if f.Was != nil {
		old = "a/" + *f.Was
	}
	switch f.Kind {
	case "added":
		old = "/dev/null"
	case "deleted":
		now = "/dev/null"
	}
	fmt.Println(s.Paint(terminal.Strong, "--- "+client.Inert(old)+"\n+++ "+client.Inert(now)))
	if f.WasType != nil || f.Type != "file" {
		fmt.Println("(" + client.Inert(strings.TrimSpace(strings.TrimPrefix(f.name(), f.Path))) + ")")
	}
	if f.Binary {
		fmt.Println("(binary)")
	}
	for _, h := range f.Hunks {
		fmt.Println(s.Paint(terminal.Run, fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", h.OldStart, h.OldLines, h.NewStart, h.NewLines,
			client.Inert(h.Section))))
		for _, l := range h.Lines {
			tone := terminal.Plain
			switch {
			case strings.HasPrefix(l, "+"):
				tone = terminal.Added
			case strings.HasPrefix(l, "-"):
				tone = terminal.Removed
			}
			fmt.Println(s.Paint(tone, client.Escape(l)))
		}
	}
	if f.Cut {
		fmt.Println("(the rest is more than is shown)")
	}
}
