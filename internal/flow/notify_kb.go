package flow

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/kb"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// nounPages are the proposals for pages of a repository that wait for a person.
const nounPages = "kb_proposals"

// pageRules are those about pages, and pageReliefs what settles them.
var (
	pageRules   = []rule{{kb.ProposalAsked, Notify.proposed}}
	pageReliefs = []relief{{kb.ProposalAnswered, notification.Approval, nounPages}}
)

// proposed: owners and admins hear that proposals for pages wait for a person.
func (n Notify) proposed(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	if e.RepoID == nil {
		return out, false, nil
	}
	waits, err := kb.Waiting(tx, *e.RepoID)
	if err != nil || waits == 0 {
		return out, false, err
	}
	out = notification.Notice{Kind: notification.Approval, Noun: nounPages, Subject: *e.RepoID}
	if out.Repo, err = nameOf(tx, e.RepoID); err != nil {
		return out, false, err
	}
	out.About = "Proposals for pages about " + out.Repo
	out.Path, out.Title = "/ui/kb/"+out.Repo+"?show=proposals", fmt.Sprintf("%d proposals for pages about %s wait for a person", waits, out.Repo)
	if waits == 1 {
		out.Title = "A proposal for a page about " + out.Repo + " waits for a person"
	}
	out.Text = "A run would have pages of the knowledge base say something else. Accept or decline it."
	out.To, err = deciders(tx, nil, policy.WriteKB)
	return out, true, err
}

// pagesRelieved is the repository of an event if none of its proposals waits any more.
func pagesRelieved(tx *db.Tx, e event.Recorded) (repoID string, ok bool, err error) {
	if e.RepoID == nil {
		return "", false, nil
	}
	waits, err := kb.Waiting(tx, *e.RepoID)
	return *e.RepoID, waits == 0, err
}
