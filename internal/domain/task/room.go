package task

import "yardmaster/internal/db"

// Full tells whether the queue of tx.Account takes no more tasks for now.
func (s *Service) Full(tx *db.Tx) (bool, error) {
	if s.QueueCap == Uncapped {
		return false, nil
	}
	depth, err := countQueue(tx, tx.Account)
	return depth >= s.QueueCap, err
}

// joining is how many more tasks of an account wait than before tx.
func joining(tx *db.Tx, account string) (n int64) {
	for _, s := range shifts.Added(tx) {
		if s.lane.AccountID == account {
			n += s.pending
		}
	}
	return n
}
