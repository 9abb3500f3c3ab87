// Package change shows a pull request and its diff: to people, in the order in which they decide, and as a patch
// that git applies.
package change

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// Holding says how many findings hold something.
func Holding(n int) string {
	if n == 1 {
		return "1 finding holds"
	}
	return fmt.Sprintf("%d findings hold", n)
}

// Afterwards say how a decision is taken back, or what comes next.
var Afterwards = map[string]string{
	"approve-pending": "It merges when nothing else is in its way: yardmaster pr view {id}",
	"merge":           "See how far it is with: yardmaster pr view {id}",
	"unapprove":       "It is asked again: yardmaster pr approve {id}, or yardmaster pr skip {id}",
	"skip-pending":    "Undo: yardmaster pr ask-again {id}",
	"ask-again":       "Answer with: yardmaster pr approve {id}, or yardmaster pr skip {id}",
}

// View writes a pull request for people.
func View(ctx context.Context, c *client.Client, w io.Writer, b []byte) error {
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
		Otherwise *string   `json:"otherwise"`
		Would     *effect   `json:"would"`
		Unwanted  *unwanted `json:"unwanted"`
		LeftOut   leftOut   `json:"left_out"`
		ClosedWhy *string   `json:"closed_why"`
		Babysit   struct {
			NextRoundAt *time.Time `json:"next_round_at"`
			FullSince   *time.Time `json:"queue_full_since"`
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
	if pr.Otherwise != nil {
		line("ALARM", *pr.Otherwise)
	}
	if pr.Would != nil {
		line("merge", pr.Would.words(pr.BaseRef))
	}
	if pr.Unwanted != nil && len(pr.Unwanted.Files) > 0 {
		line("look at", pr.Unwanted.words())
	}
	if len(pr.LeftOut) > 0 {
		line("left out", pr.LeftOut.words())
	}
	checks := pr.Checks
	if checks == "none" {
		checks = "none: " + noChecks
	}
	line("checks", checks)
	r := pr.Review
	text := cmp.Or(table.ReviewWords(r.State), r.State)
	switch {
	case r.Holding > 0:
		text += "; " + Holding(r.Holding) + " the merge"
	case r.Verdict != nil:
		text = "reviewed; it found nothing that holds the merge"
	}
	line("review", text)
	switch {
	case pr.Babysit.TaskID != nil:
		line("repair", "by task "+*pr.Babysit.TaskID)
	case pr.Babysit.FullSince != nil:
		line("repair", "waits for room in the queue since "+pr.Babysit.FullSince.Local().Format(time.DateTime))
	case pr.Babysit.NextRoundAt != nil:
		line("repair", "agents begin the next round at "+pr.Babysit.NextRoundAt.Local().Format(time.DateTime))
	}
	if pr.TaskID != nil {
		line("task", *pr.TaskID)
	}
	line("opened", terminal.When(time.Now(), pr.CreatedAt))
	if q := pr.Queue; q != nil {
		line("queue", q.words())
	}
	if pr.Needs != nil {
		line("waits", "until "+pr.Needs.Plain(pr.Needs.ClearsWhen))
	}
	if a := pr.PendingAction; a != nil && a.RetryAt != nil && a.Error != nil {
		line("merge", "is tried again at "+a.RetryAt.Local().Format(time.DateTime)+": "+*a.Error)
	}
	if a := pr.PendingAction; a != nil && a.BeginsAt != nil && a.BeginsAt.After(time.Now()) {
		line("merge", "begins "+terminal.When(time.Now(), *a.BeginsAt)+"; until then: yardmaster pr unapprove "+client.Word(pr.ID))
	}
	if asked := pr.Warning(); asked != "" {
		line("asked", asked)
	}
	if body := strings.TrimSpace(pr.Body); body != "" {
		fmt.Fprintln(w)
		screen.Paragraph(w, body)
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

// effect is what the merge of a pull request would do to its base.
type effect struct {
	BaseSHA   string     `json:"base_sha"`
	Files     []struct{} `json:"files"`
	More      int        `json:"more"`
	Additions int        `json:"additions"`
	Deletions int        `json:"deletions"`
	Back      *struct {
		Paths   []string `json:"paths"`
		More    int      `json:"more"`
		Commits int      `json:"commits"`
	} `json:"back"`
}

// words are the effect for people.
func (e effect) words(base string) string {
	files := several(len(e.Files)+e.More, "file")
	text := fmt.Sprintf("would change %s of %s at %.10s, +%d -%d", files, base, e.BaseSHA, e.Additions, e.Deletions)
	if b := e.Back; b != nil {
		text += "; it would bring back what was dropped: " + strings.Join(b.Paths, ", ")
		if b.More > 0 {
			text += fmt.Sprintf(" and %d more", b.More)
		}
		if b.Commits > 0 {
			text += " (" + several(b.Commits, "commit") + ")"
		}
	}
	return text
}

// several is a number of things.
func several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// queuePlace is the place of a pull request in a merge queue.
type queuePlace struct {
	Queue    string    `json:"queue"`
	State    string    `json:"state"`
	Position int       `json:"position"`
	At       time.Time `json:"at"`
}

// words says the place in a sentence for people.
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

// DefineDiff is the definition of the command that shows the diff of a pull request.
func DefineDiff(fl *flag.FlagSet) tree.Action {
	since := fl.String("since", "",
		"show what changed since this commit, `SHA`, say the head that you looked at last; its first 7 digits will do")
	return func(ctx context.Context, plain []string) error {
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		return screen.Paging(func() error { return Show(ctx, c, plain, *since) })
	}
}

// Show writes the diff of a pull request; since, if it is given, is the commit from which on.
func Show(ctx context.Context, c *client.Client, plain []string, since string) error {
	read := func(path string) (d diff, err error) {
		return d, c.Call(ctx, http.MethodGet, DiffAt(plain[0], path, since), nil, &d)
	}
	if len(plain) > 1 {
		d, err := read(plain[1])
		if err == nil && d.File == nil {
			return fmt.Errorf("the pull request does not change %s; yardmaster pr view %s lists what it does", plain[1], client.Word(plain[0]))
		}
		if err == nil {
			err = d.print()
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
			if err := d.print(); err != nil {
				return err
			}
		}
	}
	if more := all.More + len(all.Files) - len(shown); more > 0 {
		fmt.Fprintf(os.Stderr, "%d files more are not shown; name one: yardmaster pr diff %s PATH\n", more, client.Word(plain[0]))
	}
	return nil
}

// DiffAt is where the diff of a pull request is: of all files, or of one.
func DiffAt(pr, path, since string) string {
	q := url.Values{}
	if since != "" {
		q.Set("since_sha", since)
	}
	if path != "" {
		q.Set("path", path)
	}
	return "/v1/prs/" + url.PathEscape(pr) + "/diff?" + q.Encode()
}

// mostShown is the largest number of files that are shown unasked: each is a call.
const mostShown = 200

// print writes the lines of a file in the form of git. On a terminal hidden characters are
// written as escapes; elsewhere it is the change as it is, for git apply.
func (d *diff) print() error {
	f, s := d.File, screen.Out()
	if s.Width == 0 {
		return d.patch(os.Stdout)
	}
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
	fmt.Println(s.Paint(terminal.Strong, "--- "+OneLine(old)+"\n+++ "+OneLine(now)))
	if f.WasType != nil || f.Type != "file" {
		fmt.Println("(" + OneLine(strings.TrimSpace(strings.TrimPrefix(f.name(), f.Path))) + ")")
	}
	if f.Binary {
		fmt.Println("(binary)")
	}
	for _, h := range f.Hunks {
		fmt.Println(s.Paint(terminal.Run, fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", h.OldStart, h.OldLines, h.NewStart, h.NewLines,
			OneLine(h.Section))))
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
	return nil
}

// OneLine is a text with its hidden characters, and the ends of its lines, as escapes.
func OneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(client.Escape(s))
}
