package queue

import (
	"yardmaster/internal/db"
)

// Keys of HoldCounts besides the reasons of holds.
const (
	Claimable = "none"   // pending tasks that no hold keeps from a box
	Unread    = "unread" // pending tasks of queues that are not read
)

// mostQueues is how many queues HoldCounts reads.
const mostQueues = 100

// HoldCounts counts the pending and the held tasks of all accounts by the reason
// of their holds; a task with several reasons counts for each. A task that waits for
// another one which waits for a person counts for the former alone. The cost depends on
// the number of queues and of their lanes, not on the number of tasks. HoldCounts reads
// the 100 deepest queues.
func (s *Service) HoldCounts(tx *db.Tx) (map[string]int64, error) {
	out := map[string]int64{Claimable: 0}
	parked, err := countParked.All(tx)
	if err != nil {
		return nil, err
	}
	for _, p := range parked {
		out[p.FailureKind] += p.N
	}
	queues, err := selectQueues.All(tx)
	if err != nil {
		return nil, err
	}
	for i, q := range queues {
		if i >= mostQueues {
			out[Unread] += q.Pending
			continue
		}
		if err := tx.As(q.AccountID, func() error { return s.countHolds(tx, out) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// countHolds adds the holds of the queue of tx.Account to out.
func (s *Service) countHolds(tx *db.Tx, out map[string]int64) error {
	f, groups, err := s.cohorts(tx, tx.Account)
	if err != nil {
		return err
	}
	for i := range groups {
		holds := f.holds(&groups[i].Row)
		if len(holds) == 0 {
			out[Claimable] += groups[i].n
		}
		for _, h := range holds {
			out[h.Reason] += groups[i].n
		}
	}
	return nil
}
