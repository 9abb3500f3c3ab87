package task

import "yardmaster/internal/db"

// Waiting is the queues of all accounts, for whoever watches the server.
type Waiting struct {
	Pending   int64            // tasks
	Claimable int64            // of those, the ones that no hold keeps from a box
	Holds     map[string]int64 // tasks by the reason of a hold; a task with several reasons counts for each
}

// Unread is the reason of the pending tasks that Waiting does not look at.
const Unread = "unread"

// mostQueues is how many queues Waiting looks at.
const mostQueues = 100

// Waiting counts the pending and the held tasks of all accounts by what holds
// them. What it costs depends on the number of queues and their lanes, not on
// the number of tasks. It looks at the 100 deepest queues; the tasks of others
// are counted as Unread.
func (s *Service) Waiting(tx *db.Tx) (Waiting, error) {
	out := Waiting{Holds: map[string]int64{}}
	held, err := countHeld.All(tx)
	if err != nil {
		return out, err
	}
	for _, h := range held {
		out.Holds[h.FailureKind] += h.N
	}
	queues, err := selectQueues.All(tx)
	if err != nil {
		return out, err
	}
	for i, q := range queues {
		out.Pending += q.Pending
		if i >= mostQueues {
			out.Holds[Unread] += q.Pending
			continue
		}
		err := tx.As(q.AccountID, func() error { return s.waiting(tx, &out) })
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// waiting adds the queue of tx.Account.
func (s *Service) waiting(tx *db.Tx, out *Waiting) error {
	f, groups, err := s.cohorts(tx, tx.Account)
	if err != nil {
		return err
	}
	for i := range groups {
		holds := f.holds(&groups[i].Row)
		if len(holds) == 0 {
			out.Claimable += groups[i].n
		}
		for _, h := range holds {
			out.Holds[h.Reason] += groups[i].n
		}
	}
	return nil
}
