package shelf

import (
	"context"
	"path"
)

// push is a push under way.
type push struct {
	folder  *Folder
	server  Server
	report  *Report
	of      map[string]Page // as the server lists them
	current bool
	due     []todo
}

// todo is a page that is to be sent.
type todo struct {
	slug, body string
	why        string // why the server has not taken it yet: a link of it leads nowhere
}

// sort finds out whether a file is to be sent.
func (p *push) sort(slug string) error {
	body, here, err := p.folder.read(slug)
	if err != nil {
		p.report.Refused = append(p.report.Refused, Note{slug, err.Error()})
		return nil
	}
	base, was := p.folder.state.Pages[slug]
	now, is := p.of[slug]
	switch {
	case !here:
	case was && digest(body) == base.Digest && is && now.Version == base.Version:
		p.report.Same++
	case was && digest(body) == base.Digest && is:
		p.report.Kept = append(p.report.Kept, Note{slug, "changed there: yardmaster kb pull brings it"})
	case was && digest(body) == base.Digest:
		p.report.Kept = append(p.report.Kept, Note{slug, "deleted there: yardmaster kb pull removes the file"})
	default:
		p.due = append(p.due, todo{slug: slug, body: body})
	}
	return nil
}

// send sends what is due. A page whose links lead to others of them waits for these; those that
// lead to each other are begun with their titles.
func (p *push) send(ctx context.Context) error {
	begun := map[string]bool{}
	for len(p.due) > 0 {
		before := len(p.due)
		if err := p.round(ctx, begun); err != nil {
			return err
		}
		if len(p.due) < before {
			continue
		}
		some := false
		for _, t := range p.due {
			if _, is := p.of[t.slug]; is || begun[t.slug] {
				continue
			}
			if _, was := p.folder.state.Pages[t.slug]; was {
				continue // it was deleted there, which the round has said
			}
			_, err := p.server.Write(ctx, t.slug, Draft{
				Body: "# " + path.Base(t.slug) + "\n", Links: []string{}, Provenance: Source{Files: []string{}},
			})
			if _, _, one := refused(err); err != nil && !one {
				return err
			}
			if err == nil {
				begun[t.slug], some = true, true
			}
		}
		if !some {
			break
		}
	}
	for _, t := range p.due {
		p.report.Refused = append(p.report.Refused, Note{t.slug, t.why})
		if begun[t.slug] {
			if err := p.server.Withdraw(ctx, t.slug); err != nil && !missing(err) {
				return err
			}
		}
	}
	return nil
}

// round sends each page that is due once, and leaves those that wait for others.
func (p *push) round(ctx context.Context, begun map[string]bool) error {
	var left []todo
	for i, t := range p.due {
		version, err := p.server.Write(ctx, t.slug, p.draft(t, begun[t.slug]))
		kind, why, one := refused(err)
		switch {
		case err == nil:
			p.folder.note(t.slug, version, t.body, p.folder.state.Pages[t.slug].Titled)
			p.report.Done = append(p.report.Done, Change{t.slug, "pushed", version})
		case one && kind == "link-unresolved":
			t.why = why
			left = append(left, t)
		case one && kind == "page-changed":
			if err := p.met(ctx, t); err != nil {
				return err
			}
		case one:
			p.report.Refused = append(p.report.Refused, Note{t.slug, why})
		default:
			p.due = append(left, p.due[i:]...)
			return err
		}
	}
	p.due = left
	return nil
}

// draft is all of a page: its new text, and what else it has.
func (p *push) draft(t todo, begun bool) Draft {
	d := Draft{Body: t.body, Links: []string{}, Provenance: Source{Files: []string{}}, IfVersion: p.folder.state.Pages[t.slug].Version}
	if begun {
		d.IfVersion = 1
	}
	now, is := p.of[t.slug]
	if !is {
		return d
	}
	d.Links, d.Provenance.Files = append(d.Links, now.Links...), append(d.Provenance.Files, now.Provenance.Files...)
	if now.Provenance.Commit != nil && !p.current {
		d.Provenance.Commit = *now.Provenance.Commit
	}
	if p.folder.state.Pages[t.slug].Titled {
		d.Title = now.Title
	}
	return d
}

// met deals with a page that is not what the folder knows of it.
func (p *push) met(ctx context.Context, t todo) error {
	now, err := p.server.Read(ctx, t.slug)
	switch {
	case missing(err):
		p.report.Refused = append(p.report.Refused,
			Note{t.slug, "deleted there and changed here: delete the file, or give it another name to push it"})
	case err != nil:
		return err
	case now.Body == t.body:
		p.folder.note(t.slug, now.Version, now.Body, Titled(now))
		p.report.Done = append(p.report.Done, Change{t.slug, "noted", now.Version})
	default:
		p.report.Refused = append(p.report.Refused, Note{t.slug, both})
	}
	return nil
}
