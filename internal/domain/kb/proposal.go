package kb

import (
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/secretscan"
)

// Kinds of proposals.
const (
	wholePage = "page" // the whole text of a page
	note      = "note" // something that is put behind the text
)

// ProposalState is how far a proposal is.
type ProposalState string

// States of a proposal.
const (
	judging  = "judging"  // a judge is asked
	waiting  = "waiting"  // a person is
	accepted = "accepted" // it is in the page
	declined = "declined"
	outdated = "outdated" // the page was written meanwhile
)

// Values lists all states.
func (ProposalState) Values() []string {
	return []string{judging, waiting, accepted, declined, outdated}
}

const (
	// Learnt begins the slugs of the pages that runs may begin.
	Learnt   = "learnt/"
	mostNote = 2000 // bytes of a note
	mostOpen = 100  // proposals of a repository that nobody has decided
	mostWhy  = 500  // bytes
)

// Proposed is what a run would have a page say.
type Proposed struct {
	RunID, TaskID, ID string // ID is the run's own of it
	Keeper            bool   // the run keeps pages: it may replace those that Named names
	Named             string // the text that the run was given
	Commit            string // that it looked at; empty: not known
	Strangers         bool   // it was given text of strangers: a person decides
	Slug, Title, Why  string
	Body, Add         string // one of them
	Files             []string
}

// Propose keeps what a run of a repository of tx.Account would have a page say. Nothing of it
// is in the page before a judge or a person accepts it. It returns a fault for one that cannot be.
func (s *Service) Propose(tx *db.Tx, repoID string, p Proposed) error {
	r, err := find(tx, repoID)
	if err != nil {
		return err
	}
	if !r.Enabled {
		return notEnabled(r.FullName(), r.Gone)
	}
	old, had, err := onePage.Maybe(tx, repoID, p.Slug)
	if err != nil {
		return err
	}
	row := proposalRow{
		ID: id.New(), RepoID: repoID, Slug: p.Slug, RunID: p.RunID, TaskID: p.TaskID, Declared: p.ID, Base: old.Version, Kind: wholePage,
		Title: p.Title, Body: p.Body, Files: db.JSON[[]string]{V: once(p.Files)}, CommitSHA: p.Commit, Why: p.Why, CreatedAt: tx.Now,
	}
	if p.Add != "" {
		row.Kind, row.Body = note, strings.TrimSpace(p.Add)
	}
	if err := p.mayBe(&old, had, labelOf(p.TaskID)); err != nil {
		return err
	}
	d := row.draft(&old)
	if err := d.check(); err != nil {
		return err
	}
	if had && d.equal(&old) {
		return nil // it is there
	}
	if _, err := s.resolve(tx, repoID, &d); err != nil {
		return err
	}
	if row.State, err = s.whoDecides(tx, &old, had, p.Strangers); err != nil {
		return err
	}
	if p.Strangers {
		row.Reason = "From a run that was given text of strangers, who may have written this."
	}
	if open, err := countOpen.One(tx, repoID); err != nil || open >= mostOpen {
		return err
	}
	same, err := openProposals.All(tx, repoID, p.Slug)
	if err != nil || slices.ContainsFunc(same, func(o proposalRow) bool { return o.Kind == row.Kind && o.Body == row.Body }) {
		return err // another run has said so already
	}
	n, err := putProposal.Exec(tx, row)
	if err != nil || n == 0 {
		return err
	}
	if row.State == judging {
		s.judged.Add(tx, row.ID, due.Entry{Account: tx.Account})
	}
	return proposedEvent.Record(tx, event.Subject{ID: p.Slug, RepoID: repoID}, proposedData{row.ID, p.RunID, row.State})
}

// mayBe refuses what a run may not propose, whatever its text is. label is what stood in the
// brief alone.
func (p *Proposed) mayBe(old *pageRow, had bool, label string) error {
	switch {
	case (p.Body == "") == (strings.TrimSpace(p.Add) == ""):
		return fault.Field("body", "must be sent, or add, and not both")
	case p.Body != "" && !p.Keeper:
		return fault.Field("body", "is for runs of the kind kb; send add")
	case len(p.Add) > mostNote:
		return fault.Field("add", fmt.Sprintf("must have at most %d bytes", mostNote))
	case p.Why == "" || len(p.Why) > mostWhy:
		return fault.Field("why", fmt.Sprintf("must have 1 to %d bytes", mostWhy))
	case secretscan.Found(p.Why): // draft.check looks at the text
		return fault.Field("why", "looks like it holds a secret")
	case !had && !strings.HasPrefix(p.Slug, Learnt):
		return fault.Field("slug", "is no page; a new one begins with "+Learnt)
	case had && p.Body != "" && !strings.Contains(p.Named, "`"+old.Slug+"`"):
		return fault.Field("slug", "is no page that the task names")
	case strings.Contains(p.Title+p.Body+p.Add, label):
		return fault.Field("body", "repeats what was no part of a page")
	}
	return nil
}

// whoDecides is the state that a proposal begins in. A judge decides about pages that no
// person has written, and a person about all else.
func (s *Service) whoDecides(tx *db.Tx, old *pageRow, had, strangers bool) (string, error) {
	if strangers || had && (old.RunID == nil || old.Kept != "") {
		return waiting, nil
	}
	if had {
		if n, err := byPeople.One(tx, old.RepoID, old.Slug); err != nil || n > 0 {
			return waiting, err
		}
	}
	return judging, nil
}

// draft is the page that a proposal would make of what it is now.
func (r *proposalRow) draft(old *pageRow) draft {
	d := draft{
		Slug: r.Slug, Title: r.Title, Body: r.Body, Commit: r.CommitSHA, Links: list(old.Links.V), Files: list(r.Files.V), RunID: &r.RunID,
		If: &r.Base, Of: r.ID,
	}
	if d.Title == "" {
		d.Title = old.Title
	}
	if r.Kind == note && old.Version > 0 {
		// A note says nothing of what the page was written from.
		d.Title, d.Body, d.Commit, d.If = old.Title, strings.TrimRight(old.Body, "\n")+"\n\n"+r.Body+"\n", old.CommitSHA, nil
		d.Files = list(old.Files.V)
	} else if len(d.Files) == 0 {
		d.Files = list(old.Files.V)
	}
	return d
}

// accept puts a proposal, which the caller has locked, into its page.
func (s *Service) accept(tx *db.Tx, r *proposalRow, reason string) error {
	old, _, err := onePage.Maybe(tx, r.RepoID, r.Slug)
	if err != nil {
		return err
	}
	d := r.draft(&old)
	if err := d.check(); err != nil {
		return err
	}
	d.Accepted = isPerson(policy.From(tx.Context()))
	if _, _, err := s.write(tx, r.RepoID, &d, entries(text{d.Slug, d.Title, d.Body})); err != nil {
		return err
	}
	return s.decided(tx, r, accepted, reason)
}

// decided notes what became of a proposal.
func (s *Service) decided(tx *db.Tx, r *proposalRow, state, reason string) error {
	r.State, r.Reason, r.DecidedBy, r.DecidedAt = state, reason, policy.From(tx.Context()).Label(), &tx.Now
	if state == waiting { // it is not decided
		r.DecidedBy, r.DecidedAt = "", nil
	}
	if _, err := setDecided.Exec(tx, decideArgs{r.ID, state, reason, r.DecidedBy, r.DecidedAt}); err != nil {
		return err
	}
	if _, err := forgetProposals.Exec(tx, r.RepoID); err != nil {
		return err
	}
	if state == accepted { // the event of the page says so
		return nil
	}
	return decidedEvent.Record(tx, event.Subject{ID: r.Slug, RepoID: r.RepoID}, decidedData{r.ID, state, reason})
}
