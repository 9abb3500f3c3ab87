package mergequeue

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// The kinds of intents about queues of hosts. The object of both is the pull request, so
// that one is never left before it was entered.
var (
	enterHost = intent.Declare[hostArgs, codehost.QueueEntry]("mergequeue.enter", false)
	leaveHost = intent.Declare[hostArgs, struct{}]("mergequeue.leave", false)
)

type hostArgs struct {
	EntryID string
	Number  int64
	HeadSHA string
}

// enterer puts pull requests into the queues of their hosts.
type enterer struct{ s *Service }

// Still implements intent.Handler.
func (h enterer) Still(tx *db.Tx, c intent.Call[hostArgs]) (bool, error) {
	e, in, err := entryByID.Maybe(tx, c.Args.EntryID)
	if err != nil || !in {
		return false, err
	}
	orders, err := h.s.Orders.Standing(tx, []string{e.ActionID})
	return orders[e.ActionID].HeadSHA == c.Args.HeadSHA, err
}

// Do implements intent.Handler.
func (enterer) Do(ctx context.Context, f codehost.Forge, c intent.Call[hostArgs]) (codehost.QueueEntry, error) {
	if err := f.Enqueue(ctx, c.Repo.HostRepo(), c.ID, c.Args.Number, c.Args.HeadSHA); err != nil {
		return codehost.QueueEntry{}, err
	}
	at, _, err := f.QueueEntry(ctx, c.Repo.HostRepo(), c.Args.Number)
	return at, err
}

// Done implements intent.Handler.
func (h enterer) Done(tx *db.Tx, c intent.Call[hostArgs], at codehost.QueueEntry, failure error) error {
	e, in, err := entryByID.Maybe(tx, c.Args.EntryID)
	if err != nil {
		return err
	}
	if !in { // the order was taken back meanwhile
		if failure == nil {
			return h.s.takeOut(tx, c.Repo, c.Object, c.Args)
		}
		return nil
	}
	h.s.Hub.Notify(tx, event.PullTopic)
	if failure == nil {
		_, err := setPlace.Exec(tx, setPlaceArgs{ID: e.ID, Place: int64(at.Position), SHA: at.GroupSHA, Now: tx.Micros()})
		return err
	}
	reason, why := ByRule, "the code host did not take it into its merge queue"
	var blocked *codehost.BlockedError
	switch {
	case errors.Is(failure, codehost.ErrHeadMoved), errors.Is(failure, codehost.ErrNotFound):
		reason = ByHead
	case errors.As(failure, &blocked) && len(blocked.Missing) > 0:
		why += ": " + blocked.Missing[0]
	}
	return h.s.refuse(tx, e, reason, why, "")
}

// leaver takes pull requests out of the queues of their hosts.
type leaver struct{}

// Still implements intent.Handler.
func (leaver) Still(*db.Tx, intent.Call[hostArgs]) (bool, error) { return true, nil }

// Do implements intent.Handler.
func (leaver) Do(ctx context.Context, f codehost.Forge, c intent.Call[hostArgs]) (struct{}, error) {
	err := f.Dequeue(ctx, c.Repo.HostRepo(), c.ID, c.Args.Number)
	if errors.Is(err, codehost.ErrNotFound) || errors.Is(err, codehost.ErrCannot) {
		err = nil
	}
	return struct{}{}, err
}

// Done implements intent.Handler.
func (leaver) Done(*db.Tx, intent.Call[hostArgs], struct{}, error) error { return nil }

// takeOut has a pull request taken out of the queue of its host.
func (s *Service) takeOut(tx *db.Tx, r repo.Ref, prID string, a hostArgs) error {
	_, err := leaveHost.Put(tx, intent.Want[hostArgs]{Repo: r, Object: prID, Rank: intent.ForPeople, Args: a})
	return err
}

// forgiven is the time for which a host may not know yet what it has queued.
const forgiven = 30 * time.Second

// Seen records where the host of a queued order says that its pull request is. One that
// is in no queue any more was thrown out, and no delivery has told why.
func (s *Service) Seen(tx *db.Tx, r repo.Ref, prID string, at codehost.QueueEntry, in bool) error {
	e, known, err := entryOfPull.Maybe(tx, prID)
	if err != nil || !known || e.Kind != Host {
		return err
	}
	if in {
		_, err := setPlace.Exec(tx, setPlaceArgs{ID: e.ID, Place: int64(at.Position), SHA: at.GroupSHA, Now: tx.Micros()})
		return err
	}
	if e.State != Queued || tx.Now.Sub(e.ChangedAt) < forgiven {
		return nil
	}
	return s.expelled(tx, r, e, codehost.ExitUnsaid, "")
}

// Expelled tells that the host of a pull request took it out of its queue. says is the host's own
// word for why, such as CI_FAILURE, for people.
func (s *Service) Expelled(tx *db.Tx, r repo.Ref, prID string, why codehost.Exit, says string) error {
	e, known, err := entryOfPull.Maybe(tx, prID)
	if err != nil || !known || e.Kind != Host || e.State != Queued {
		return err
	}
	return s.expelled(tx, r, e, why, says)
}

func (s *Service) expelled(tx *db.Tx, r repo.Ref, e entryRow, exit codehost.Exit, says string) error {
	failed := Result{}
	if e.GroupSHA != "" {
		var err error
		if failed, err = s.Checks.Result(tx, r, e.GroupSHA, true); err != nil {
			return err
		}
	}
	switch exit {
	case codehost.ExitMerged: // the pull request itself tells of its merge
		return nil
	case codehost.ExitConflict:
		return s.refuse(tx, e, ByConflict, "it conflicts with what is before it in the merge queue of the code host", "")
	case codehost.ExitFailed, codehost.ExitSlow:
		why := "its checks failed in the merge queue of the code host"
		if exit == codehost.ExitSlow {
			why = "its checks took too long in the merge queue of the code host"
		}
		if failed.Why != "" {
			why += "; " + failed.Why
		}
		return s.refuse(tx, e, ByCheck, why, failed.Log)
	case codehost.ExitUnsaid:
		if failed.State == CheckFailed {
			return s.refuse(tx, e, ByCheck, "its checks failed in the merge queue of the code host; "+failed.Why, failed.Log)
		}
		says = "no reason was told"
	}
	return s.refuse(tx, e, ByPerson, "it was taken out of the merge queue of the code host: "+says, "")
}
