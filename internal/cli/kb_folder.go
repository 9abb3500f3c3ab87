package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/draft"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/shelf"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// reportMembers are those of what came of a pull or a push.
var reportMembers = []string{"done", "same", "kept", "refused"}

// List answers all pages without their texts.
func (p library) List(ctx context.Context) (all []shelf.Page, err error) {
	err = client.Each(ctx, p.Client, p.at("pages", "")+"?per_page=100", func(page shelf.Page) error {
		all = append(all, page)
		return nil
	})
	return all, err
}

// Read answers a page.
func (p library) Read(ctx context.Context, slug string) (of shelf.Text, err error) {
	err = p.Call(ctx, http.MethodGet, p.at("pages", slug), nil, &of)
	return of, err
}

// Write replaces a page.
func (p library) Write(ctx context.Context, slug string, d shelf.Draft) (int64, error) {
	var of struct{ Version int64 }
	err := p.Call(ctx, http.MethodPut, p.at("pages", slug), d, &of)
	return of.Version, err
}

// Withdraw deletes a page that has its first version.
func (p library) Withdraw(ctx context.Context, slug string) error {
	of, err := p.Read(ctx, slug)
	if err != nil || of.Version != 1 {
		return err
	}
	return p.Call(ctx, http.MethodDelete, p.at("pages", slug), nil, nil)
}

// edit has a person write a page, or reads its text from a file, and replaces what there was
// when that began. It answers nothing if nothing was changed.
func (p library) edit(ctx context.Context, slug, file string, current bool) ([]byte, error) {
	now, err := p.Read(ctx, slug)
	var problem *client.Problem
	if err != nil && (!errors.As(err, &problem) || problem.Status != http.StatusNotFound) {
		return nil, err
	}
	d := shelf.Draft{IfVersion: now.Version, Links: append([]string{}, now.Links...)}
	d.Provenance.Files = append([]string{}, now.Provenance.Files...)
	if c := now.Provenance.Commit; c != nil && !current {
		d.Provenance.Commit = *c
	}
	if shelf.Titled(now) {
		d.Title = now.Title
	}
	if file != "" {
		b, err := exit.OfFile(terminal.Read(file))
		if err != nil {
			return nil, err
		}
		d.Body = string(b)
	} else {
		text, err := draft.Compose(ctx, os.Getenv, strings.TrimRight(now.Body, "\n"), "The page "+slug+" of "+p.repo+", in Markdown.")
		if err != nil {
			return nil, err
		}
		if d.Body = text + "\n"; text == strings.TrimSpace(now.Body) && !current {
			fmt.Println("Nothing was changed.")
			return nil, nil
		}
	}
	return p.Fetch(ctx, http.MethodPut, p.at("pages", slug), d)
}

// folder are the flags of pull and push.
type folder struct{ knowledge }

// open opens the folder of a command, and finds its repository: the one that is named, the one
// that the folder is of, or else that of the git remote.
func (k *folder) open(ctx context.Context, dir string, create bool) (*shelf.Folder, library, error) {
	if err := k.Check(); err != nil {
		return nil, library{}, err
	}
	f, err := exit.OfFile(shelf.Open(dir, create))
	if err != nil {
		return nil, library{}, err
	}
	name := k.repo
	if name == "" {
		name = f.Repo()
	}
	p, err := pagesOf(ctx, name)
	if err == nil {
		if err = f.Of(p.URL, p.repo, p.id); errors.Is(err, shelf.ErrOther) {
			err = exit.Misuse(err.Error() + "; take another folder")
		}
	}
	if err != nil {
		return nil, library{}, errors.Join(err, f.Close())
	}
	return f, p, nil
}

// say prints what came of it, and fails if pages were left alone for a person to look at.
func (k *folder) say(r shelf.Report, nothing, next string) error {
	if k.ForPrograms() {
		b, err := json.Marshal(r)
		if err == nil {
			err = k.Print(os.Stdout, b)
		}
		if err != nil {
			return err
		}
	} else {
		for _, c := range r.Done {
			screen.Say("%s %s\n", c.What, c.Slug)
		}
		for _, n := range r.Kept {
			screen.Say("%s: %s\n", n.Slug, n.Why)
		}
		for _, n := range r.Refused {
			fmt.Fprintf(os.Stderr, "%s: %s\n", client.Inert(n.Slug), client.Inert(n.Why))
		}
		if len(r.Done)+len(r.Kept)+len(r.Refused) == 0 {
			fmt.Println(nothing)
		}
		if len(r.Done) > 0 {
			screen.Afterword(next)
		}
	}
	if len(r.Refused) > 0 {
		return exit.Status(exit.CodeFailed)
	}
	return nil
}

func defineKBPull(fl *flag.FlagSet) tree.Action {
	k := &folder{}
	k.add(fl)
	return func(ctx context.Context, plain []string) error {
		f, p, err := k.open(ctx, plain[0], true)
		if err != nil {
			return err
		}
		defer f.Close()
		r, err := f.Pull(ctx, p)
		next := "yardmaster kb push " + client.Word(plain[0]) + " sends what you change in it."
		return errors.Join(k.say(r, "The folder has all of it.", next), err)
	}
}

func defineKBPush(fl *flag.FlagSet) tree.Action {
	k := &folder{}
	k.add(fl)
	current := fl.Bool("current", false, "say that the texts are right for the files as they are now")
	return func(ctx context.Context, plain []string) error {
		f, p, err := k.open(ctx, plain[0], false)
		if err != nil {
			return err
		}
		defer f.Close()
		r, err := f.Push(ctx, p, *current)
		return errors.Join(k.say(r, "Nothing was changed here.",
			"yardmaster kb history SLUG --repo "+client.Word(p.repo)+" shows what a page was; yardmaster kb restore puts it back."), err)
	}
}
