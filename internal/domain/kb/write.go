package kb

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/secretscan"
)

// draft is what a page is to be.
type draft struct {
	Slug, Title, Body, Commit string
	Links, Files              []string
	RunID                     *string
	If                        *int64 // the version that it replaces; 0: there is no page; nil: whatever there is
	From                      *int64 // the version that is put back
	Accepted                  bool   // a person has accepted it, and what it leaves out
	Of                        string // the proposal that it is; empty: none
}

// slugForm is the form of a slug, which pattern tags repeat.
var slugForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)
})

const slugSays = "must be parts of letters, digits, dots, hyphens or underscores with slashes between, each beginning with a letter, digit or _"

// check returns fault.Invalid, which names the fields, for a page that cannot be. It fills
// in the title, and puts lists into their plain form.
func (d *draft) check() error {
	wrong := fault.New(fault.Invalid, "", "The request has invalid fields.")
	wrong.Fields = map[string][]string{}
	add := func(field, message string) { wrong.Fields[field] = append(wrong.Fields[field], message) }
	if !slugForm().MatchString(d.Slug) {
		add("slug", slugSays)
	}
	switch {
	case strings.TrimSpace(d.Body) == "":
		add("body", "must not be empty")
	case len(d.Body) > mostBody:
		add("body", fmt.Sprintf("must have at most %d bytes", mostBody))
	case secretscan.Found(d.Body) || secretscan.Found(d.Title):
		add("body", "looks like it holds a secret; a secret belongs under /v1/secrets or /v1/repos/{owner}/{repo}/secrets")
	}
	for i, l := range d.Links {
		if len(l) > mostSlug || !slugForm().MatchString(l) {
			add(fmt.Sprintf("links.%d", i), "must be the slug of a page")
		}
	}
	for i, f := range d.Files {
		if f == "" || f == "." || path.Clean("/"+f) != "/"+f || strings.HasPrefix(f, "/") {
			add(fmt.Sprintf("provenance.files.%d", i), "must be the path of a file in the repository")
		}
	}
	if d.Commit != "" && !codehost.ValidSHA(d.Commit) {
		add("provenance.commit", "must be a commit of 40 hexadecimal digits")
	}
	if len(wrong.Fields) > 0 {
		return wrong
	}
	d.Links, d.Files = once(d.Links), once(d.Files)
	if d.Title = strings.TrimSpace(d.Title); d.Title == "" {
		d.Title = titleOf(d.Slug, d.Body)
	}
	return nil
}

// once has each text once, in the order of the first ones.
func once(all []string) []string {
	out := []string{}
	seen := make(map[string]bool, len(all))
	for _, s := range all {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// titleOf is the first heading of a text, or the end of the slug.
func titleOf(slug, body string) string {
	for line := range strings.Lines(body) {
		if h := strings.TrimLeft(line, "#"); len(h) < len(line) && strings.HasPrefix(h, " ") {
			if h = strings.TrimSpace(h); h != "" {
				return string([]rune(h)[:min(200, len([]rune(h)))])
			}
		}
	}
	return path.Base(slug)
}

// equal tells whether a draft changes nothing of a page. Who sends the text of a stale page
// again without a commit says that it is still right, which is a change.
func (d *draft) equal(p *pageRow) bool {
	return d.Title == p.Title && d.Body == p.Body && d.Commit == p.CommitSHA && slices.Equal(d.Links, p.Links.V) &&
		slices.Equal(d.Files, p.Files.V) && (p.StaleAt == nil || d.Commit != "")
}

// write makes or replaces a page of a repository of tx.Account. words are the entries of the
// draft, which its caller has checked. changed is false if the page is that already.
func (s *Service) write(tx *db.Tx, repoID string, d *draft, words map[string]byte) (now pageRow, created bool, err error) {
	r, err := find(tx, repoID)
	if err != nil {
		return now, false, err
	}
	if !r.Enabled {
		return now, false, notEnabled(r.FullName(), r.Gone)
	}
	index, err := hold(tx, repoID)
	if err != nil {
		return now, false, err
	}
	old, had, err := onePage.Maybe(tx, repoID, d.Slug)
	if err != nil {
		return now, false, err
	}
	if d.If != nil && *d.If != old.Version {
		return now, false, fault.Newf(fault.Conflict, "page-changed", "The page has version %d and not %d. Read it again.",
			old.Version, *d.If).With("version", old.Version)
	}
	if had && d.equal(&old) {
		return old, false, nil
	}
	if !had && index.Pages >= mostPages {
		return now, false, fault.Newf(fault.Unprocessable, "too-many-pages", "A repository may have %d pages.", mostPages)
	}
	now = pageRow{Body: d.Body, headRow: headRow{
		RepoID: repoID, Slug: d.Slug, Ord: index.NextOrd, Title: d.Title, Links: db.JSON[[]string]{V: d.Links}, CommitSHA: d.Commit,
		Files: db.JSON[[]string]{V: d.Files}, RunID: d.RunID, Version: old.Version + 1, SeenSHA: d.Commit,
		StaleFiles: db.JSON[[]string]{V: []string{}}, CreatedAt: tx.Now, UpdatedAt: tx.Now, UpdatedBy: policy.From(tx.Context()).Label(),
	}}
	targets, err := s.judge(tx, d, &old, &now)
	if err != nil {
		return now, false, err
	}
	var before map[string]byte
	if had {
		now.Ord, now.CreatedAt = old.Ord, old.CreatedAt
		before = entries(text{old.Slug, old.Title, old.Body})
		if _, err := keepVersion.Exec(tx, repoID, d.Slug); err != nil {
			return now, false, err
		}
	} else {
		index.Pages, index.NextOrd = index.Pages+1, index.NextOrd+1
	}
	if _, err := putPage.Exec(tx, now); err != nil {
		return now, false, err
	}
	if err := newestVersions(tx, &now); err != nil {
		return now, false, err
	}
	if err := relink(tx, repoID, d.Slug, targets); err != nil {
		return now, false, err
	}
	if err := (stored{tx, repoID}).reindex(now.Ord, changed(before, words)); err != nil {
		return now, false, err
	}
	if _, err := moveIndex.Exec(tx, moveIndexArgs{repoID, index.Pages, index.NextOrd}); err != nil {
		return now, false, err
	}
	if _, err := outdate.Exec(tx, outdateArgs{repoID, d.Slug, d.Of, tx.Now}); err != nil {
		return now, false, err
	}
	if len(d.Files) > 0 {
		if err := s.lookSoon(tx, repoID); err != nil {
			return now, false, err
		}
	}
	return now, !had, writtenEvent.Record(tx, event.Subject{ID: d.Slug, RepoID: repoID},
		writtenData{Version: now.Version, Bytes: len(d.Body), RunID: d.RunID, From: d.From, ProposalID: db.NullText(d.Of)})
}

// hold keeps others from writing pages of a repository until the transaction ends.
func hold(tx *db.Tx, repoID string) (indexRow, error) {
	if _, err := beginIndex.Exec(tx, repoID, formula); err != nil {
		return indexRow{}, err
	}
	return lockIndex.One(tx, repoID)
}

func notEnabled(name, gone string) error {
	fix := fmt.Sprintf(`Enable it first: PATCH /v1/repos/%s with {"enabled": true} (project.update).`, name)
	if gone != "" {
		fix = "The code host does not let the server at it (" + gone + "): an owner there can change that."
	}
	return fault.Reason("repo_not_enabled", "The repository "+name+" is not enabled. "+fix).With("repo", name)
}

// judge refuses a draft that a run, people's text or a link keeps from being, and notes in
// now whose text it is. It returns the pages that the draft leads to.
func (s *Service) judge(tx *db.Tx, d *draft, old, now *pageRow) ([]string, error) {
	if d.RunID != nil {
		if ok, err := s.Runs.OfRepo(tx, *d.RunID, now.RepoID); err != nil {
			return nil, err
		} else if !ok {
			return nil, fault.Field("provenance.run_id", "is no run in this repository")
		}
	}
	person := isPerson(policy.From(tx.Context())) && d.RunID == nil
	kept, lost := keptByPeople(old.Body, old.Kept, d.Body, person)
	if now.Kept = kept; !person && !d.Accepted && len(lost) > 0 {
		return nil, textOfPeople(lost)
	}
	return s.resolve(tx, now.RepoID, d)
}

// isPerson tells whether an actor is a person, or a program that a person uses.
func isPerson(a policy.Actor) bool { return a.UserID != "" }

func textOfPeople(lost []string) error {
	shown := []string{}
	for _, p := range lost[:min(len(lost), 5)] {
		runes := []rune(p)
		shown = append(shown, string(runes[:min(len(runes), 200)]))
	}
	return fault.Newf(fault.Conflict, "text-of-people", "The text lacks what people wrote, which only a person takes out: %d of "+
		"their paragraphs.", len(lost)).With("paragraphs", shown)
}

// resolve lists the pages that a draft leads to. It fails with fault.Unprocessable if a link
// leads to no page of the repository and to no file of the provenance.
func (s *Service) resolve(tx *db.Tx, repoID string, d *draft) ([]string, error) {
	refs := references(d.Slug, d.Body)
	if len(refs) > mostLinks {
		return nil, fault.Field("body", fmt.Sprintf("must have at most %d links", mostLinks))
	}
	asked := slices.Clone(d.Links)
	for _, r := range refs {
		asked = append(asked, r.pages...)
	}
	there, err := existing(tx, repoID, once(asked))
	if err != nil {
		return nil, err
	}
	there[d.Slug] = true // a page may lead to itself
	var targets, nowhere []string
	for _, l := range d.Links {
		if there[l] {
			targets = append(targets, l)
		} else {
			nowhere = append(nowhere, l)
		}
	}
	for _, r := range refs {
		if i := slices.IndexFunc(r.pages, func(slug string) bool { return there[slug] }); i >= 0 {
			targets = append(targets, r.pages[i])
		} else if !slices.ContainsFunc(r.files, func(f string) bool { return slices.Contains(d.Files, f) }) {
			nowhere = append(nowhere, r.text)
		}
	}
	if len(nowhere) > 0 {
		return nil, fault.Newf(fault.Unprocessable, "link-unresolved", "Links lead to no page of the repository and to no file of "+
			"provenance.files: %d of them. Write the pages that they name first, or leave them out.", len(nowhere)).
			With("unresolved", nowhere[:min(len(nowhere), 20)])
	}
	return once(targets), nil
}

// drop deletes a page with its versions; false if there is none.
func (s *Service) drop(tx *db.Tx, repoID, slug string) (bool, error) {
	if _, err := find(tx, repoID); err != nil {
		return false, err
	}
	if _, had, err := onePage.Maybe(tx, repoID, slug); err != nil || !had {
		return false, err
	}
	index, err := hold(tx, repoID)
	if err != nil {
		return false, err
	}
	old, had, err := onePage.Maybe(tx, repoID, slug)
	if err != nil || !had {
		return false, err
	}
	if _, lost := keptByPeople(old.Body, old.Kept, "", false); len(lost) > 0 && !isPerson(policy.From(tx.Context())) {
		return false, textOfPeople(lost)
	}
	if err := (stored{tx, repoID}).reindex(old.Ord, changed(entries(text{old.Slug, old.Title, old.Body}), nil)); err != nil {
		return false, err
	}
	if _, err := dropPage.Exec(tx, repoID, slug); err != nil {
		return false, err
	}
	if _, err := dropVersions.Exec(tx, repoID, slug, old.Version); err != nil {
		return false, err
	}
	if _, err := dropLinks.Exec(tx, repoID, slug); err != nil {
		return false, err
	}
	if _, err := outdate.Exec(tx, outdateArgs{repoID, slug, "", tx.Now}); err != nil {
		return false, err
	}
	if _, err := moveIndex.Exec(tx, moveIndexArgs{repoID, index.Pages - 1, index.NextOrd}); err != nil {
		return false, err
	}
	return true, deletedEvent.Record(tx, event.Subject{ID: slug, RepoID: repoID}, event.None{})
}
