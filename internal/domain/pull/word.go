package pull

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// Unwatch has agents leave a pull request of tx.Account alone, because somebody asked for
// it: its round ends, and its question is closed. A merge that has begun goes on. It fails
// with the reason pr_not_open.
func (s *Service) Unwatch(tx *db.Tx, prID, by string) error {
	pr, ok, err := record.Lock(tx, prID)
	switch {
	case err != nil:
		return err
	case !ok:
		return fault.Missing("pull request")
	case pr.State != record.Open:
		return fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	}
	taskID := pr.BabysitTask
	pr.Watch = record.WatchOff
	pr.EndRound(record.BabysitOff)
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if taskID != nil { // after the row has let go of it: its end is no end of a round any more
		if err := record.TaskUnneeded.Send(tx, *taskID); err != nil {
			return err
		}
	}
	if err := s.Unask(tx, pr); err != nil {
		return err
	}
	if err := s.Move(tx, pr); err != nil {
		return err
	}
	if err := record.SeenTo.Send(tx, record.Note{PRID: pr.ID, Text: "Somebody has had agents leave it alone."}); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return record.UnwatchedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, record.UnwatchedData{By: by})
}

// Standing is how a pull request stands, for people.
type Standing struct {
	State, HeadRef, HeadSHA, BaseRef, Mergeable, Checks string
	Draft, Fork, Watched                                bool
	Round                                               string // what an agent does on the branch: a state of Babysit; ""
	WaitsUntil                                          string // what a person has to do; ""
	Asked                                               bool   // the question about the head waits
	Ordered                                             bool   // its merge was ordered
	Objections                                          int64
}

// StandingOf answers how a pull request of tx.Account stands; false if there is none.
func StandingOf(tx *db.Tx, prID string) (Standing, bool, error) {
	pr, ok, err := record.ByID.Maybe(tx, tx.Account, prID)
	if err != nil || !ok {
		return Standing{}, false, err
	}
	out := Standing{State: pr.State, HeadRef: pr.HeadRef, HeadSHA: pr.HeadSHA, BaseRef: pr.BaseRef,
		Mergeable: pr.Mergeable, Checks: pr.Checks, Draft: pr.Draft,
		Fork: pr.Fork, Watched: !pr.Unwatched() && pr.Watch != record.WatchOff, Objections: pr.Objections}
	if pr.Repairing() {
		out.Round = pr.Babysit
	}
	if n, ok := pr.Need(""); ok {
		out.WaitsUntil = n.ClearsWhen
	}
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	out.Asked, out.Ordered = open && a.State == record.ActionPending, open && a.State == record.ActionApproved
	return out, true, err
}

type rearmIn struct {
	ID     string `json:"id" format:"uuid" doc:"id of the pull request"`
	Reason string `json:"reason" minLength:"1" maxLength:"1000" example:"The flaky test is mended on main." doc:"why it is worth more rounds; agents are given it, and the audit log keeps it"`
}

// Rearmed is the answer of pr.rearm_babysit.
type Rearmed struct {
	_        struct{}       `doc:"What pr.rearm_babysit did." schema:"Rearmed"`
	Forgiven int64          `json:"forgiven" doc:"rounds that no longer count"`
	Sweep    string         `json:"sweep" enum:"queued" doc:"the pass that begins the next round: always queued"`
	Began    *string        `json:"began" example:"round" enum:"look,checks,review,round,question,merge" doc:"what happens now that did not before; look: the code host is asked how the branch stands; null: nothing was to be done"`
	Babysit  record.Babysit `json:"babysit" doc:"how the repair stands now"`
}

func (s *Service) rearm(ctx context.Context, in rearmIn) (out Rearmed, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, in.ID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("pull request")
		}
		out.Sweep = "queued"
		out.Forgiven, out.Began, err = s.Arm(tx, pr, in.Reason)
		out.Babysit = pr.Babysitting()
		return err
	})
	return out, err
}
