package pull

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

// pagePath is the path before the ids of pull requests in the addresses of their pages.
const pagePath = "/ui/prs/"

// Limits of the part of a change that a page shows.
const (
	pageFiles = 50
	pageLines = 4000
	pageBytes = 1 << 20 // bytes that are read; the file that exceeds them is read whole
	lineBytes = 2000    // bytes of one line
)

type pageView struct {
	Request
	Report   string
	Merger   string // the login of the person who decided the merge, or a label
	Command  string // the command line that decides; "" if nothing waits
	Diff     Diff
	Files    int // number of changed files
	Shown    []shownFile
	Left     int    // number of files whose lines are not shown
	Gone     string // the reason why there is no diff
	Asked    string
	Approved bool
	Failed   string // the reason why the approved merge is tried again
}

type shownFile struct {
	FileDiff
	Rows []shownLine
}

type shownLine struct{ Kind, Text string }

// page shows a pull request to a person who is signed in and may see it.
func (s *Service) page(ctx context.Context, in idIn) (op.Reply, error) {
	a := policy.From(ctx)
	if a.Anonymous() {
		to := "/login?" + url.Values{"return_to": {pagePath + in.ID}}.Encode()
		return web.GoTo(to), nil
	}
	if !a.Scopes.Has(policy.Scopes(policy.ReadPRs)) {
		return op.Reply{}, fault.Missing("pull request")
	}
	var pr row
	var r repo.Ref
	var v pageView
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		var ok bool
		if pr, ok, err = byID.Maybe(tx, tx.Account, in.ID); err != nil {
			return err
		}
		if !ok {
			return fault.Missing("pull request")
		}
		if r, _, err = repo.ByID(tx, pr.RepoID); err != nil {
			return err
		}
		if v.Report, err = bodyOf.One(tx, tx.Account, pr.ID); err != nil {
			return err
		}
		pending, err := pendingOf(tx, []string{pr.ID})
		if err != nil {
			return err
		}
		places, err := s.Queue.Places(tx, []string{pr.ID})
		if err != nil {
			return err
		}
		v.Request = s.wire(pr, pending, places)
		v.Merger, err = merger(tx, pr.MergedBy)
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	if a := v.PendingAction; a != nil {
		v.Asked, v.Approved = a.Question, a.State == ActionApproved && a.Kind == KindMerge
		if a.RetryAt != nil {
			v.Failed = *a.Error
		}
	}
	if n := v.NeedsPerson; n != nil {
		verb := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(n.Capability, "pr."), "_pending"), "_", "-")
		if verb == "approve" || verb == "ask-again" || verb == "merge" {
			v.Command = "yardmaster pr " + verb + " " + pr.ID
			if a := v.PendingAction; a != nil && a.State == ActionPending && (a.Protected != nil || a.Kind != KindMerge) {
				v.Command += " --question " + a.ID
			}
		}
	}
	if err := s.show(ctx, &v, pr, r); err != nil {
		return op.Reply{}, err
	}
	v.Report = strings.ReplaceAll(v.Report, "\r\n", "\n")
	reply, err := web.Render(pages, 200, "pull", v, "")
	if text, is := reply.Body.(string); is {
		// The page holds text of the change. Escape makes invisible characters visible.
		reply.Body = inert.Escape(text)
	}
	return reply, err
}

// merger names the actor who decided a merge: the login of a person who is known, else
// the label.
func merger(tx *db.Tx, by *string) (string, error) {
	if by == nil {
		return "", nil
	}
	userID, person := strings.CutPrefix(*by, "user:")
	if !person {
		return *by, nil
	}
	u, ok, err := people.UserByID(tx, userID)
	if err != nil || !ok {
		return *by, err
	}
	return u.Login, nil
}

// count is a number with its noun.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// show reads the change of the pull request, within the limits of a page.
func (s *Service) show(ctx context.Context, v *pageView, pr row, r repo.Ref) (err error) {
	if v.Diff, err = s.diffOf(ctx, r.HostRepo(), pr, "", ""); err != nil {
		if f, known := errors.AsType[*fault.Error](err); known && f.Slug == "commits_gone" {
			v.Gone = f.Detail
			return nil
		}
		return err
	}
	v.Files = len(v.Diff.Files) + v.Diff.More
	lines, read := 0, 0
	for i, f := range v.Diff.Files {
		if i >= pageFiles || lines >= pageLines || read >= pageBytes {
			v.Left = len(v.Diff.Files) - i + v.Diff.More
			return nil
		}
		d, err := s.diffOf(ctx, r.HostRepo(), pr, "", unquoted(f.Path))
		if err != nil {
			return err
		}
		if d.File == nil {
			continue
		}
		shown := shownFile{FileDiff: *d.File}
		for _, h := range d.File.Hunks {
			shown.Rows = append(shown.Rows, shownLine{"at", h.place()})
			for _, l := range h.Lines {
				if lines++; lines > pageLines {
					shown.Cut = true
					break
				}
				if read += len(l); len(l) > lineBytes {
					l = strings.ToValidUTF8(l[:lineBytes], "") + fmt.Sprintf(" … %d bytes more", len(l)-lineBytes)
				}
				shown.Rows = append(shown.Rows, shownLine{map[byte]string{'+': "new", '-': "gone"}[(l + " ")[0]], l})
			}
		}
		v.Shown = append(v.Shown, shown)
	}
	v.Left = v.Diff.More
	return nil
}

var pages = web.Templates(`
{{define "pull"}}{{template "broad" (printf "%s#%d: %s" .Repo .Number .Title)}}
<table>
<tr><th>State</th><td>{{.State}}{{with .Merger}} by {{.}}{{end}}{{with .ClosedWhy}}: {{.}}{{end}}</td></tr>
{{with .TaskID}}<tr><th>Task</th><td><code>{{.}}</code></td></tr>
{{end}}<tr><th>Branch</th><td><code>{{.HeadRef}}</code> at <code>{{.HeadSHA}}</code>, into <code>{{.BaseRef}}</code> ({{.Mergeable}})</td></tr>
<tr><th>Checks</th><td>{{.Checks}}</td></tr>
{{if .Babysit.TaskID}}<tr><th>Repair</th><td>by task <code>{{.Babysit.TaskID}}</code></td></tr>
{{else}}{{with .Babysit.NextRoundAt}}<tr><th>Repair</th><td>agents begin the next round at {{.UTC.Format "2006-01-02 15:04:05"}} UTC</td></tr>
{{end}}{{end}}{{with .NeedsPerson}}<tr><th>Waits</th><td>until {{.ClearsWhen}}</td></tr>
{{end}}{{if .Approved}}<tr><th>Waits</th><td>for its merge, which is approved{{with .Failed}}, and is tried again: {{.}}{{end}}</td></tr>
{{else}}{{with .Asked}}<tr><th>Asked</th><td>{{.}}</td></tr>
{{end}}{{end}}</table>
{{with .Command}}<p>When you have read the change: <code>{{.}}</code></p>
{{end}}{{with .Report}}<h2>Report</h2>
<blockquote>{{.}}</blockquote>
{{end}}{{if .Gone}}<p class="note">{{.Gone}}</p>
{{else}}<h2>{{count .Files "file"}}, +{{.Diff.Additions}} -{{.Diff.Deletions}}</h2>
<table>{{range .Diff.Files}}<tr><td>{{with .Was}}{{.}} → {{end}}{{.Path}}</td><td>{{.Kind}}{{with .About}}, {{.}}{{end}}</td><td class="count">{{if .Binary}}binary{{else}}+{{.Additions}} -{{.Deletions}}{{end}}</td></tr>
{{end}}</table>
{{range .Shown}}<section><h2>{{.Path}}{{with .About}} ({{.}}){{end}}</h2>
{{if .Binary}}<p>A binary file.</p>
{{else}}<pre class="diff">{{range .Rows}}{{if eq .Kind "new"}}<ins>{{.Text}}</ins>{{else if eq .Kind "gone"}}<del>{{.Text}}</del>{{else if eq .Kind "at"}}<b>{{.Text}}</b>{{else}}{{.Text}}
{{end}}{{end}}</pre>
{{end}}{{if .Cut}}<p class="note">The rest is more than is shown here.</p>
{{end}}</section>
{{end}}{{with .Left}}<p class="note">The lines of {{count . "more file"}} are not shown here: <code>yardmaster pr diff {{$.ID}} PATH</code></p>
{{end}}{{end}}{{template "end"}}{{end}}`, template.FuncMap{"count": count})
