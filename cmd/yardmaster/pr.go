package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"yardmaster/internal/client"
)

func runPRList(ctx context.Context, args []string) error {
	if _, err := parse(flags("pr list"), args); err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	type waiting struct {
		PRID   string `json:"pr_id"`
		Repo   string `json:"repo"`
		Number int    `json:"number"`
		Kind   string `json:"kind"`
		Head   string `json:"head_sha"`
		Title  string `json:"title"`
	}
	var rows [][]string
	err = client.Each(ctx, c, "/v1/approvals?per_page=100", func(w waiting) error {
		rows = append(rows, []string{w.PRID, fmt.Sprintf("%s#%d", w.Repo, w.Number), w.Kind, fmt.Sprintf("%.10s", w.Head), w.Title})
		return nil
	})
	if err != nil {
		return err
	}
	lines("ID\tPULL REQUEST\tASKED\tHEAD\tTITLE", rows)
	if len(rows) == 0 {
		fmt.Fprintln(os.Stderr, "Nothing waits for a yes or no. What waits for something else says so in `yardmaster task list`.")
	}
	return nil
}

func runPRApprove(ctx context.Context, args []string) error {
	return decide(ctx, "pr approve", args, "approve-pending", "Approved")
}

func runPRSkip(ctx context.Context, args []string) error {
	return decide(ctx, "pr skip", args, "skip-pending", "Declined")
}

func decide(ctx context.Context, name string, args []string, verb, done string) error {
	fl := flags(name)
	question := ""
	if verb == "approve-pending" || verb == "merge" {
		fl.StringVar(&question, "question", "", "the `ID` of the question that you read; wanted where it is about what is protected")
	}
	plain, err := parse(fl, args, "ID")
	if err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	pr, err := c.Decide(ctx, plain[0], verb, question)
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Slug() == "question_changed" {
		return fmt.Errorf("%w\nIt is asked: %s\nIf that is what you mean: yardmaster %s %s --question %s", err,
			client.Inert(p.Question), name, plain[0], p.ActionID)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s#%d at %.10s.\n", done, pr.Repo, pr.Number, pr.HeadSHA)
	if asked := pr.Warning(); asked != "" {
		fmt.Println("It was asked:", client.Inert(asked))
	}
	return nil
}

func runPRAskAgain(ctx context.Context, args []string) error {
	return decide(ctx, "pr ask-again", args, "ask-again", "Asked again")
}

func runPRMerge(ctx context.Context, args []string) error {
	return decide(ctx, "pr merge", args, "merge", "To be merged")
}

func runPRView(ctx context.Context, args []string) error {
	plain, err := parse(flags("pr view"), args, "ID")
	if err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	var pr struct {
		client.Pull
		Title     string    `json:"title"`
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
		Queue *queuePlace `json:"queue"`
		Needs *struct {
			ClearsWhen string `json:"clears_when"`
			client.Clear
		} `json:"needs_person"`
	}
	path := "/v1/prs/" + url.PathEscape(plain[0])
	if err := c.Call(ctx, http.MethodGet, path, nil, &pr); err != nil {
		return err
	}
	var d diff
	if err := c.Call(ctx, http.MethodGet, path+"/diff", nil, &d); err != nil {
		return err
	}
	fmt.Printf("%s#%d  %s\n", pr.Repo, pr.Number, client.Inert(pr.Title))
	line := func(name, value string) { fmt.Printf("  %-9s %s\n", name, client.Inert(value)) }
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
	fmt.Println()
	d.list()
	fmt.Printf("\nSee the lines with: yardmaster pr diff %s\n", plain[0])
	if pr.Needs != nil {
		if command := pr.Needs.Command(); command != "" {
			fmt.Printf("Then: %s\n", command)
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

func (d *diff) list() {
	for _, f := range d.Files {
		counts := fmt.Sprintf("+%d -%d", f.Additions, f.Deletions)
		if f.Binary {
			counts = "binary"
		}
		fmt.Printf("  %-12s %12s  %s\n", f.Kind, counts, client.Inert(f.name()))
	}
	if d.More > 0 {
		fmt.Printf("  and %d files more\n", d.More)
	}
	files := "files"
	if len(d.Files)+d.More == 1 {
		files = "file"
	}
	fmt.Printf("%d %s, +%d -%d\n", len(d.Files)+d.More, files, d.Additions, d.Deletions)
}

func runPRDiff(ctx context.Context, args []string) error {
	fl := flags("pr diff")
	since := fl.String("since", "",
		"show what changed since this commit, `SHA`, say the head that you looked at last; its first 7 digits will do")
	plain, err := parse(fl, args, "ID", "[PATH]")
	if err != nil {
		return err
	}
	c, err := connect()
	if err != nil {
		return err
	}
	read := func(path string) (d diff, err error) {
		q := url.Values{}
		if *since != "" {
			q.Set("since_sha", *since)
		}
		if path != "" {
			q.Set("path", path)
		}
		return d, c.Call(ctx, http.MethodGet, "/v1/prs/"+url.PathEscape(plain[0])+"/diff?"+q.Encode(), nil, &d)
	}
	if len(plain) > 1 {
		d, err := read(plain[1])
		if err == nil && d.File == nil {
			return fmt.Errorf("the pull request does not change %s; yardmaster pr view %s lists what it does", plain[1], plain[0])
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
	if *since != "" {
		*since = all.From // the resolved commit, for all files
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
		fmt.Printf("%d files more are not shown; name one: yardmaster pr diff %s PATH\n", more, plain[0])
	}
	return nil
}

// mostShown is the largest number of files that are shown unasked: each is a call.
const mostShown = 200

// print writes the lines of a file in the form of git, without control characters.
func (d *diff) print() {
	f := d.File
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
	fmt.Printf("--- %s\n+++ %s\n", client.Inert(old), client.Inert(now))
	if f.WasType != nil || f.Type != "file" {
		fmt.Println("(" + strings.TrimSpace(strings.TrimPrefix(f.name(), f.Path)) + ")")
	}
	if f.Binary {
		fmt.Println("(binary)")
	}
	for _, h := range f.Hunks {
		fmt.Printf("@@ -%d,%d +%d,%d @@ %s\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines, client.Escape(h.Section))
		for _, l := range h.Lines {
			fmt.Println(client.Escape(l))
		}
	}
	if f.Cut {
		fmt.Println("(the rest is more than is shown)")
	}
}
