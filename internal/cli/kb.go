package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// kbCommands are about what is known of a repository.
func kbCommands() []tree.Command {
	return append([]tree.Command{
		{Words: "kb list", Summary: "the pages of the knowledge base of a repository", Answers: "kb.page_list", Rows: true,
			Values: map[string]tree.Values{}, Define: defineKBList,
			Examples: []string{"yardmaster kb list --repo acme/web", "yardmaster kb list --stale true"}},
		{Words: "kb search", Args: "WORD…", Summary: "search in the pages, best first", Answers: "kb.search", Rows: true,
			Define:   defineKBSearch,
			Examples: []string{`yardmaster kb search "how are tests run" --repo acme/web`}},
		{Words: "kb show", Args: "SLUG", Summary: "print the text of a page", Answers: "kb.page_get", Define: defineKBShow,
			Examples: []string{"yardmaster kb show guides/build --repo acme/web"}},
		{Words: "kb edit", Args: "SLUG", Summary: "write a page in an editor, or from a file; a new one if there is none",
			Answers: "kb.page_upsert", Define: defineKBEdit,
			More:     "A page that somebody replaces meanwhile is not replaced: the text stays in a file.",
			Examples: []string{"yardmaster kb edit guides/build --repo acme/web", "yardmaster kb edit guides/build --file build.md"}},
		{Words: "kb history", Args: "SLUG", Summary: "the versions of a page that are kept", Answers: "kb.page_versions", Rows: true,
			Define: defineKBHistory, Examples: []string{"yardmaster kb history guides/build --repo acme/web"}},
		{Words: "kb diff", Args: "SLUG", Summary: "what differs between two versions of a page", Answers: "kb.page_diff",
			Define:   defineKBDiff,
			Examples: []string{"yardmaster kb diff guides/build", "yardmaster kb diff guides/build --from 2 --to 5"}},
		{Words: "kb restore", Args: "SLUG VERSION", Summary: "put an earlier version of a page back, as a new version",
			Answers: "kb.page_restore", Define: defineKBRestore, Examples: []string{"yardmaster kb restore guides/build 2"}},
		{Words: "kb delete", Args: "SLUG", Summary: "delete a page with its versions", Answers: "kb.page_delete", Define: defineKBDelete,
			Examples: []string{"yardmaster kb delete guides/old --repo acme/web"}},
		{Words: "kb pull", Args: "DIR", Summary: "bring the pages into a folder of Markdown", Define: defineKBPull, Members: reportMembers,
			More:     "A page that was changed here and there is named and left alone on both sides; the exit code is 1 then.",
			Examples: []string{"yardmaster kb pull kb --repo acme/web", "yardmaster kb pull kb"}},
		{Words: "kb push", Args: "DIR", Summary: "send what was changed in a folder of pages", Define: defineKBPush, Members: reportMembers,
			More:     "A page that was changed here and there is named and left alone on both sides; the exit code is 1 then. Nothing is deleted there.",
			Examples: []string{"yardmaster kb push kb", "yardmaster kb push kb --current"}},
	}, proposalCommands()...)
}

// knowledge are the flags that commands about pages have in common.
type knowledge struct {
	repo string
	output.Flags
}

func (k *knowledge) add(fl *flag.FlagSet) {
	fl.StringVar(&k.repo, "repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	k.Add(fl)
}

// pages checks the flags, and finds the pages of the repository.
func (k *knowledge) pages(ctx context.Context) (library, error) {
	if err := k.Check(); err != nil {
		return library{}, err
	}
	return pagesOf(ctx, k.repo)
}

// library has the pages of a repository on a server.
type library struct {
	*client.Client
	repo, id string
}

// pagesOf finds a repository by its name, the one of the folder's remote if that is empty.
func pagesOf(ctx context.Context, repo string) (library, error) {
	in, err := noun.InRepo(ctx, repo, nil)
	if err != nil {
		return library{}, err
	}
	c, err := signin.Connect()
	if err != nil {
		return library{}, err
	}
	owner, name := in[0].Text, in[1].Text
	id, err := noun.IDOfRepo(ctx, c, owner, name)
	return library{c, owner + "/" + name, id}, err
}

func (p library) at(what, slug string) string {
	if slug != "" {
		slug = "/" + url.PathEscape(slug)
	}
	return "/v1/kb/" + url.PathEscape(p.id) + "/" + what + slug
}

// word is a command that goes on with a page; more is what it takes besides.
func (p library) word(command, slug, more string) string {
	return "yardmaster kb " + command + " " + client.Word(slug) + more + " --repo " + client.Word(p.repo)
}

func defineKBList(fl *flag.FlagSet) tree.Action {
	page, l := noun.KnowledgePage(), &noun.Listing{}
	l.Skip = "repoId"
	l.Add(fl, page)
	repo := fl.String("repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	return func(ctx context.Context, _ []string) error {
		p, err := pagesOf(ctx, *repo)
		if err != nil {
			return err
		}
		return page.Under(ctx, l, "repoId", p.id)
	}
}

func defineKBHistory(fl *flag.FlagSet) tree.Action {
	version, l := noun.KnowledgeVersion(), &noun.Listing{}
	l.Skip = "repoId"
	l.Add(fl, version)
	repo := fl.String("repo", "", "`OWNER/NAME`; that of the folder's git remote when empty")
	if f := fl.Lookup("slug"); f != nil {
		f.Hidden = true // it is the argument
	}
	return func(ctx context.Context, plain []string) error {
		p, err := pagesOf(ctx, *repo)
		if err != nil {
			return err
		}
		of := *version
		of.About = []capability.Given{{Name: "repoId", Text: p.id}, {Name: "slug", Text: plain[0]}}
		return of.RunList(ctx, l)
	}
}

// found is a page that a search has found.
type found struct {
	Slug    string `json:"slug"`
	Title   string `json:"title"`
	Stale   bool   `json:"stale"`
	Excerpt struct {
		Text string `json:"text"`
	} `json:"excerpt"`
}

func defineKBSearch(fl *flag.FlagSet) tree.Action {
	k := &knowledge{}
	k.add(fl)
	limit := fl.IntP("limit", "L", 10, "at most `N` pages, 25 at most")
	return func(ctx context.Context, plain []string) error {
		p, err := k.pages(ctx)
		if err != nil {
			return err
		}
		q := url.Values{"q": {strings.Join(plain, " ")}, "limit": {strconv.Itoa(*limit)}}
		b, err := p.Fetch(ctx, http.MethodGet, p.at("search", "")+"?"+q.Encode(), nil)
		if err != nil {
			return err
		}
		if k.ForPrograms() {
			return k.Print(os.Stdout, rowsOf(b))
		}
		var all struct{ Data []found }
		if err := json.Unmarshal(b, &all); err != nil {
			return err
		}
		for _, h := range all.Data {
			stale := ""
			if h.Stale {
				stale = "  (stale)"
			}
			fmt.Printf("%s  %s%s\n", client.Inert(h.Slug), client.Inert(h.Title), stale)
			screen.Paragraph(os.Stdout, h.Excerpt.Text)
		}
		if len(all.Data) == 0 {
			fmt.Fprintln(os.Stderr, "No page has anything like it.")
		}
		return nil
	}
}

// rowsOf are the rows of a collection, which programs get.
func rowsOf(b []byte) []byte {
	var page struct{ Data json.RawMessage }
	if json.Unmarshal(b, &page) != nil || page.Data == nil {
		return b
	}
	return page.Data
}

func defineKBShow(fl *flag.FlagSet) tree.Action {
	k := &knowledge{}
	k.add(fl)
	return func(ctx context.Context, plain []string) error {
		p, err := k.pages(ctx)
		if err != nil {
			return err
		}
		var of struct {
			Body       string   `json:"body"`
			LeadsTo    []string `json:"leads_to"`
			LinkedFrom []string `json:"linked_from"`
			Stale      *struct {
				Files []string `json:"files"`
			} `json:"stale"`
			Version int64 `json:"version"`
		}
		done, err := k.Answered(ctx, p.Client, http.MethodGet, p.at("pages", plain[0]), nil, &of)
		if done || err != nil {
			return err
		}
		if err := screen.Paged(client.Escape(strings.TrimRight(of.Body, "\n")) + "\n"); err != nil {
			return err
		}
		for _, line := range []struct {
			says string
			all  []string
		}{{"Leads to", of.LeadsTo}, {"Linked from", of.LinkedFrom}} {
			if len(line.all) > 0 {
				screen.Afterword(line.says + ": " + client.Inert(strings.Join(line.all, ", ")))
			}
		}
		if of.Stale != nil {
			screen.Afterword("Stale, because of changes in: " + client.Inert(strings.Join(of.Stale.Files, ", ")))
		}
		return nil
	}
}

func defineKBEdit(fl *flag.FlagSet) tree.Action {
	k, file := &knowledge{}, ""
	k.add(fl)
	fl.StringVarP(&file, "file", "F", "", "read the text from `FILE`, - for standard input")
	current := fl.Bool("current", false, "say that the text is right for the files as they are now")
	return func(ctx context.Context, plain []string) error {
		p, err := k.pages(ctx)
		if err != nil {
			return err
		}
		b, err := p.edit(ctx, plain[0], file, *current)
		if err != nil || b == nil {
			return err
		}
		draft.Accepted(ctx)
		if k.ForPrograms() {
			return k.Print(os.Stdout, b)
		}
		var of struct{ Version int64 }
		if err := json.Unmarshal(b, &of); err != nil {
			return err
		}
		fmt.Printf("%s has version %d.\n", client.Inert(plain[0]), of.Version)
		if of.Version > 1 {
			screen.Afterword("Undo: " + p.word("restore", plain[0], " "+strconv.FormatInt(of.Version-1, 10)))
		} else {
			screen.Afterword("Undo: " + p.word("delete", plain[0], ""))
		}
		return nil
	}
}

func defineKBDiff(fl *flag.FlagSet) tree.Action {
	k := &knowledge{}
	k.add(fl)
	from := fl.Int64("from", 0, "a version `N`; the one before the other when 0")
	to := fl.Int64("to", 0, "another version `N`; what the page is when 0")
	return func(ctx context.Context, plain []string) error {
		p, err := k.pages(ctx)
		if err != nil {
			return err
		}
		q := url.Values{}
		for name, n := range map[string]int64{"from": *from, "to": *to} {
			if n != 0 {
				q.Set(name, strconv.FormatInt(n, 10))
			}
		}
		var d pageDiff
		done, err := k.Answered(ctx, p.Client, http.MethodGet, p.at("diff", plain[0])+"?"+q.Encode(), nil, &d)
		if done || err != nil {
			return err
		}
		var text strings.Builder
		d.write(&text)
		return screen.Paged(text.String())
	}
}

// pageDiff is what differs between two versions of a page.
type pageDiff struct {
	From, To int64
	Hunks    []struct {
		OldLine int `json:"old_line"`
		NewLine int `json:"new_line"`
		Removed []string
		Added   []string
	}
}

func (d pageDiff) write(w io.Writer) {
	fmt.Fprintf(w, "version %d to version %d\n", d.From, d.To)
	for _, h := range d.Hunks {
		fmt.Fprintf(w, "@@ -%d,%d +%d,%d @@\n", h.OldLine, len(h.Removed), h.NewLine, len(h.Added))
		for _, l := range h.Removed {
			fmt.Fprintln(w, "-"+client.Inert(l))
		}
		for _, l := range h.Added {
			fmt.Fprintln(w, "+"+client.Inert(l))
		}
	}
	if len(d.Hunks) == 0 {
		fmt.Fprintln(w, "The texts are the same.")
	}
}

func defineKBRestore(fl *flag.FlagSet) tree.Action {
	k := &knowledge{}
	k.add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := k.Check(); err != nil {
			return err
		}
		version, err := strconv.ParseInt(plain[1], 10, 64)
		if err != nil {
			return exit.Misused("VERSION is a number, not %q", plain[1])
		}
		p, err := pagesOf(ctx, k.repo)
		if err != nil {
			return err
		}
		var of struct{ Version int64 }
		done, err := k.Answered(ctx, p.Client, http.MethodPost, p.at("restore", plain[0]), map[string]any{"version": version}, &of)
		if done || err != nil {
			return err
		}
		fmt.Printf("Version %d of %s is back, as version %d.\n", version, client.Inert(plain[0]), of.Version)
		screen.Afterword("Undo: " + p.word("restore", plain[0], " "+strconv.FormatInt(of.Version-1, 10)))
		return nil
	}
}

func defineKBDelete(fl *flag.FlagSet) tree.Action {
	k := &knowledge{}
	k.add(fl)
	return func(ctx context.Context, plain []string) error {
		p, err := k.pages(ctx)
		if err != nil {
			return err
		}
		var of struct{ Deleted bool }
		done, err := k.Answered(ctx, p.Client, http.MethodDelete, p.at("pages", plain[0]), nil, &of)
		if done || err != nil {
			return err
		}
		if !of.Deleted {
			return exit.NotFound("there is no page " + client.Inert(plain[0]) + " of " + client.Inert(p.repo))
		}
		fmt.Printf("The page %s is deleted.\n", client.Inert(plain[0]))
		screen.Afterword(p.word("edit", plain[0], "") + " writes it anew.")
		return nil
	}
}
