package task

import "yardmaster/internal/db"

// Batch makes tasks that belong together, in one transaction. They are let into
// the queue as one: there is room for all of them or for none.
type Batch struct {
	s     *Service
	tx    *db.Tx
	fresh map[string]bool
}

// Batch begins a batch of tasks of tx.Account. It refuses as Create does for
// want of room.
func (s *Service) Batch(tx *db.Tx) (*Batch, error) {
	return &Batch{s, tx, map[string]bool{}}, s.Queue.Admit(tx)
}

// Create is Service.Create within the batch.
func (b *Batch) Create(repo Repo, sp Spec) (Row, error) {
	t, err := b.s.add(b.tx, repo, sp, b.fresh)
	b.fresh[t.ID] = true
	return t, err
}
