package task

import "yardmaster/internal/db"

// Batch creates tasks that belong together, in one transaction. The queue admits them
// as one: if it has room for one more task, it takes them all.
type Batch struct {
	s     *Service
	tx    *db.Tx
	fresh map[string]bool
}

// Batch begins a batch of tasks of tx.Account. It returns the faults of Queue.Admit.
func (s *Service) Batch(tx *db.Tx) (*Batch, error) {
	return &Batch{s, tx, map[string]bool{}}, s.Queue.Admit(tx)
}

// Create is Service.Create within the batch.
func (b *Batch) Create(repo Repo, sp Spec) (Row, error) {
	t, err := b.s.add(b.tx, repo, sp, b.fresh)
	b.fresh[t.ID] = true
	return t, err
}
