package kb

import (
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the scope that a reader needs for the events of pages.
var audience = event.Audience(policy.ReadKB)

// The data of the events. The object of an event is the page's slug, or the repository.
type (
	writtenData struct {
		Version int64   `json:"version" doc:"the version that it has"`
		Bytes   int     `json:"bytes" doc:"of its text"`
		RunID   *string `json:"run_id" doc:"the run that wrote it; null: no run"`
		From    *int64  `json:"from" doc:"the version that was put back; null: it was written anew"`
		// ProposalID is the proposal of a run that was accepted.
		ProposalID *string `json:"proposal_id" doc:"the proposal of a run that was accepted; null: it is none"`
	}
	proposedData struct {
		ProposalID string `json:"proposal_id" doc:"the proposal"`
		RunID      string `json:"run_id" doc:"the run that made it"`
		State      string `json:"state" enum:"judging,waiting" doc:"who decides: a judge, or a person"`
	}
	decidedData struct {
		ProposalID string `json:"proposal_id" doc:"the proposal"`
		State      string `json:"state" enum:"waiting,declined" doc:"waiting: the judge leaves it to a person"`
		Reason     string `json:"reason" doc:"in the words of who decided"`
	}
	outdatedData struct {
		Commit string   `json:"commit" doc:"the commit of the default branch that has other files"`
		Pages  int      `json:"pages" doc:"how many pages are stale since"`
		Slugs  []string `json:"slugs" doc:"the first 50 of them"`
	}
)

// The events of the knowledge base.
var (
	writtenEvent  = event.Declare[writtenData]("kb.page_written", audience, "A page of the knowledge base was written or replaced.")
	deletedEvent  = event.Declare[event.None]("kb.page_deleted", audience, "A page of the knowledge base was deleted.")
	proposedEvent = event.Declare[proposedData]("kb.page_proposed", audience, "A run proposed a text for a page of the knowledge base.")
	decidedEvent  = event.Declare[decidedData]("kb.proposal_decided", audience, "A proposal for a page was declined, or left to a person. One that is accepted is a page that was written.")
	outdatedEvent = event.Declare[outdatedData]("kb.pages_outdated", audience, "Files that pages were written from have changed.")
)

// ProposalAsked are the events after which a proposal may wait for a person, and ProposalAnswered
// those after which none may.
var (
	ProposalAsked    = []event.Any{proposedEvent, decidedEvent}
	ProposalAnswered = []event.Any{decidedEvent, writtenEvent, deletedEvent}
)

// Waiting counts the proposals of a repository of tx.Account that wait for a person.
func Waiting(tx *db.Tx, repoID string) (int64, error) { return countWaiting.One(tx, repoID) }
