package mergequeue

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// On tells whether the merges of a repository go through the server's own queue.
func On(r repo.Ref) bool { return r.Policy.Merge.Queue == "batch" }

// Admit tells whether an approved merge, whose pull request is locked, may be made now.
// If not, the merge is in a queue afterwards: TurnCame tells when to ask again. base is
// the present commit of the base, and atHost says that the base has a queue at its host. The
// head of a fork is in no batch: the candidate would be a branch of the repository, whose
// check has the secrets of that.
func (s *Service) Admit(tx *db.Tx, r repo.Ref, m Item, base string, atHost bool) (Turn, error) {
	e, in, err := entryOfPull.Maybe(tx, m.PRID)
	if err != nil {
		return Turn{}, err
	}
	kind := ""
	switch {
	case atHost:
		kind = Host
	case On(r) && !m.Fork:
		kind = Own
	}
	if in && (e.ActionID != m.ActionID || e.HeadSHA != m.HeadSHA || e.BaseRef != m.BaseRef || e.Kind != kind) {
		if err := s.leave(tx, r, e, "its place was for another head or queue"); err != nil {
			return Turn{}, err
		}
		in = false
	}
	switch {
	case kind == "":
		return Turn{Go: true}, nil
	case !in:
		return Turn{}, s.enter(tx, r, m, kind)
	case e.State != Going:
		s.Hub.Notify(tx, event.PullTopic)
		return Turn{}, nil
	case e.Expects == base:
		return Turn{Go: true, BaseSHA: base}, nil
	}
	b, open, err := batchByID.Maybe(tx, e.BatchID)
	if err != nil {
		return Turn{}, err
	}
	if open {
		return Turn{}, s.drop(tx, b, "the base has moved")
	}
	return Turn{}, s.back(tx, e)
}

// enter puts an approved merge at its place in a queue.
func (s *Service) enter(tx *db.Tx, r repo.Ref, m Item, kind string) error {
	e := entryRow{
		ID: id.New(), AccountID: tx.Account, RepoID: r.ID, BaseRef: m.BaseRef, PRID: m.PRID, Number: m.Number, ActionID: m.ActionID,
		HeadSHA: m.HeadSHA, Kind: kind, State: Waiting, OrderedAt: m.OrderedAt, EnteredAt: tx.Now, ChangedAt: tx.Now,
	}
	n, err := insertEntry.Exec(tx, e)
	if err != nil || n == 0 {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	if kind == Host {
		if _, err := enterHost.Put(tx, intent.Want[hostArgs]{
			Repo: r, Object: m.PRID, Rank: intent.ForPeople, Args: hostArgs{EntryID: e.ID, Number: m.Number, HeadSHA: m.HeadSHA},
		}); err != nil {
			return err
		}
	}
	return queuedEvent.Record(tx, event.Subject{ID: e.ID, RepoID: r.ID},
		queuedData{BaseRef: m.BaseRef, HeadSHA: m.HeadSHA, PRID: m.PRID, Queue: kind})
}

// Merged tells that an order was carried out: the commit sha of the base brought its head
// there. The next head of the batch goes on from that commit.
func (s *Service) Merged(tx *db.Tx, prID, actionID, sha string) error {
	e, in, err := entryOfPull.Maybe(tx, prID)
	if err != nil || !in || e.ActionID != actionID {
		return err
	}
	if n, err := leaveEntry.Exec(tx, leaveArgs{ID: e.ID, State: Merged, Now: tx.Micros()}); err != nil || n == 0 || e.Kind == Host {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	b, open, err := batchByID.Maybe(tx, e.BatchID)
	if err != nil || !open || b.State != Merging || e.State != Going {
		return err
	}
	return s.advance(tx, b, sha)
}

// advance has the next head of a batch merged into the base at a commit, or ends the
// batch.
func (s *Service) advance(tx *db.Tx, b batchRow, base string) error {
	members, err := s.members(tx, b)
	if err != nil {
		return err
	}
	if len(members) == 0 {
		return s.end(tx, b, Merged, "")
	}
	e := members[0]
	n, err := setEntry.Exec(tx, setEntryArgs{
		ID: e.ID, Was: Batched, State: Going, BatchID: b.ID, Place: e.Place, Most: e.Most, Expects: base, Now: tx.Micros(),
	})
	if err != nil || n == 0 {
		return err
	}
	return TurnCame.Send(tx, e.ActionID)
}

// members are the heads of a batch that are yet to be merged, in order.
func (s *Service) members(tx *db.Tx, b batchRow) (out []entryRow, err error) {
	all, err := line.All(tx, tx.Account, b.RepoID, b.BaseRef)
	for _, e := range all {
		if e.BatchID == b.ID && (e.State == Batched || e.State == Going) {
			out = append(out, e)
		}
	}
	return out, err
}

// AtHost tells whether an order waits in the queue of its host.
func (s *Service) AtHost(tx *db.Tx, prID, actionID string) (bool, error) {
	e, in, err := entryOfPull.Maybe(tx, prID)
	return in && e.Kind == Host && e.ActionID == actionID, err
}

// Failure is what threw a head out of its queue, for an agent that repairs it; false if
// its check did not.
func Failure(tx *db.Tx, prID, headSHA string) (why, log string, ok bool, err error) {
	e, ok, err := lastFailure.Maybe(tx, prID, headSHA)
	return e.Why, e.Log, ok, err
}

// Refusals counts how often a rule of the host has kept an order out of its queue.
func Refusals(tx *db.Tx, actionID, headSHA string) (int64, error) {
	return refusals.One(tx, actionID, headSHA)
}
