package record

import (
	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// States of a review at a host.
const (
	ReviewApproved   = "approved"
	ReviewObjects    = "changes_requested"
	ReviewDismissed  = "dismissed"
	ReviewSuperseded = "superseded" // its author has given another one
)

// Reasons why a review at a host does not count.
const (
	CountsYes  = "yes"
	NotAllowed = "no_permission" // at the host, or of a role here
	NotPerson  = "no_person"     // of a program, or of the server itself
	OfAuthor   = "author"        // of whoever opened the pull request
	OfAsker    = "requester"     // of whoever the work is done for
	OtherHead  = "other_head"    // for another commit than the present head
	NotFirst   = "not_first"     // its first delivery was lost
	NotOpen    = "not_open"
)

// HereKey begins the host_key of a request that was made here.
const HereKey = "here:"

// Recount counts the people whose last review requests changes.
func Recount(tx *db.Tx, hub *event.Hub, pr *Pull) error {
	n, err := OpenObjections.One(tx, pr.ID)
	if err != nil || n.All == pr.Objections && n.Fresh == pr.Remarks {
		return err
	}
	pr.Objections, pr.Remarks = n.All, n.Fresh
	hub.Notify(tx, event.PullTopic)
	return Save(tx, pr)
}
