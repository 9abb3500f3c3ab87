// Package shelf keeps a folder of Markdown and the knowledge base of a repository alike. What
// changed on one side is taken to the other; what changed on both is named and left alone on
// both, so that nothing that anybody wrote is lost.
//
// A page lies at its slug and ".md" below the folder. What the server had when the two were
// alike last is noted in a file of the folder, without which each page that differs counts as
// changed on both sides. The folder is opened once: no slug and no link leads out of it.
package shelf

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"yardmaster/internal/client"
	"yardmaster/internal/lazy"
)

// Page is a page as the server lists it.
type Page struct {
	Slug       string   `json:"slug"`
	Title      string   `json:"title"`
	Links      []string `json:"links"`
	Provenance struct {
		Commit *string  `json:"commit"`
		Files  []string `json:"files"`
	} `json:"provenance"`
	Version int64 `json:"version"`
}

// Text is a page with its text.
type Text struct {
	Page
	Body string `json:"body"`
}

// Source is from what a page was written.
type Source struct {
	Commit string   `json:"commit,omitempty"` // "": the default branch as it is
	Files  []string `json:"files"`
}

// Draft is what a page is to be: all of it, in the place of what there is.
type Draft struct {
	Title      string   `json:"title,omitempty"`
	Body       string   `json:"body"`
	Links      []string `json:"links"`
	Provenance Source   `json:"provenance"`
	IfVersion  int64    `json:"if_version"` // the version that it replaces; 0: there is no page
}

// Server has the pages of one repository. Its methods fail with a *client.Problem where it
// refuses.
type Server interface {
	List(ctx context.Context) ([]Page, error)
	Read(ctx context.Context, slug string) (Text, error)
	Write(ctx context.Context, slug string, d Draft) (version int64, err error)
	// Withdraw deletes a page that Write has just made, unless somebody has written it since.
	Withdraw(ctx context.Context, slug string) error
}

// Change is what was done with a page.
type Change struct {
	Slug    string `json:"slug"`
	What    string `json:"what"` // written, removed, noted, pushed
	Version int64  `json:"version,omitempty"`
}

// Note says something of a page that was left alone.
type Note struct {
	Slug string `json:"slug"`
	Why  string `json:"why"`
}

// Report is what came of a pull or a push.
type Report struct {
	Done    []Change `json:"done"`
	Same    int      `json:"same"`    // pages that needed nothing
	Kept    []Note   `json:"kept"`    // pages that wait for the other command
	Refused []Note   `json:"refused"` // pages that were left alone, for a person to look at
}

// The statuses of refusals that concern one page.
const (
	notFound      = 404
	conflict      = 409
	tooLarge      = 413
	unprocessable = 422
)

const mostBody = 1 << 20 // bytes of a page

var slugForm = lazy.New(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)

// named tells whether a name is a slug, which can be a path below the folder and nothing else.
func named(slug string) bool { return len(slug) <= 200 && slugForm.MatchString(slug) }

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// missing tells whether the server says that there is no such thing.
func missing(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Status == notFound
}

// refused is what a server said that refuses one page; ok is false for what keeps all others
// from going on as well.
func refused(err error) (slug, why string, ok bool) {
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != conflict && p.Status != tooLarge && p.Status != unprocessable || p.Slug() == "repo_not_enabled" {
		return "", "", false
	}
	return p.Slug(), p.Error(), true
}

const both = "changed here and there: look at both, put together what is to be kept, and pull again"

// Pull takes what changed on the server into the folder.
func (f *Folder) Pull(ctx context.Context, s Server) (r Report, err error) {
	defer func() { err = errors.Join(err, f.save()) }()
	pages, err := s.List(ctx)
	if err != nil {
		return r, err
	}
	there := map[string]bool{}
	for _, p := range pages {
		there[p.Slug] = true
		if !named(p.Slug) {
			r.Refused = append(r.Refused, Note{p.Slug, "its name cannot be that of a file here"})
			continue
		}
		if err := f.pull(ctx, s, p, &r); err != nil {
			return r, err
		}
	}
	for _, slug := range f.known() {
		if !there[slug] {
			if err := f.gone(slug, &r); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// pull takes one page into the folder.
func (f *Folder) pull(ctx context.Context, s Server, p Page, r *Report) error {
	base, was := f.state.Pages[p.Slug]
	body, here, err := f.read(p.Slug)
	if err != nil {
		r.Refused = append(r.Refused, Note{p.Slug, err.Error()})
		return nil
	}
	changed := here && (!was || digest(body) != base.Digest)
	switch {
	case was && base.Version == p.Version && !here:
		r.Kept = append(r.Kept, Note{p.Slug, "its file is gone; the page is still there: yardmaster kb delete deletes it"})
		return nil
	case was && base.Version == p.Version && changed:
		r.Kept = append(r.Kept, Note{p.Slug, "changed here: yardmaster kb push sends it"})
		return nil
	case was && base.Version == p.Version:
		r.Same++
		return nil
	}
	now, err := s.Read(ctx, p.Slug)
	if missing(err) {
		return nil // it went away meanwhile, which the next pull sees
	}
	if err != nil {
		return err
	}
	what := "written"
	switch {
	case here && body == now.Body:
		what = "noted"
	case changed:
		r.Refused = append(r.Refused, Note{p.Slug, both})
		return nil
	default:
		if err := f.write(p.Slug, now.Body, body, here); err != nil {
			r.Refused = append(r.Refused, Note{p.Slug, err.Error()})
			return nil
		}
	}
	f.note(p.Slug, now.Version, now.Body, Titled(now))
	r.Done = append(r.Done, Change{p.Slug, what, now.Version})
	return nil
}

// gone deals with the file of a page that is no more.
func (f *Folder) gone(slug string, r *Report) error {
	body, here, err := f.read(slug)
	switch {
	case err != nil:
		r.Refused = append(r.Refused, Note{slug, err.Error()})
		return nil
	case here && digest(body) != f.state.Pages[slug].Digest:
		r.Refused = append(r.Refused, Note{slug, "deleted there and changed here: delete the file, or give it another name to push it"})
		return nil
	case here:
		if err := f.remove(slug); err != nil {
			return err
		}
		r.Done = append(r.Done, Change{Slug: slug, What: "removed"})
	}
	delete(f.state.Pages, slug)
	return nil
}

// Push sends what changed in the folder to the server. current says that the texts are right for
// the files as they are now, which a stale page is told by.
func (f *Folder) Push(ctx context.Context, s Server, current bool) (r Report, err error) {
	defer func() { err = errors.Join(err, f.save()) }()
	slugs, notes, err := f.texts()
	if err != nil {
		return r, err
	}
	r.Refused = notes
	pages, err := s.List(ctx)
	if err != nil {
		return r, err
	}
	of := map[string]Page{}
	for _, p := range pages {
		of[p.Slug] = p
	}
	p := &push{folder: f, server: s, report: &r, of: of, current: current}
	for _, slug := range slugs {
		if err := p.sort(slug); err != nil {
			return r, err
		}
	}
	for _, slug := range f.known() {
		if _, is := of[slug]; is && !slices.Contains(slugs, slug) {
			r.Kept = append(r.Kept, Note{slug, "its file is gone; the page is still there: yardmaster kb delete deletes it"})
		}
	}
	return r, p.send(ctx)
}
