package run

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// Evacuate ends every live run of a box within tx and queues their tasks
// again, uncharged. It answers how many there were.
func (s *Service) Evacuate(tx *db.Tx, boxID, kind, text string) (int, error) {
	runs, err := selectLiveOnBox.All(tx, boxID)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, live := range runs {
		t, ok, err := task.Lock(tx, live.AccountID, live.TaskID)
		if err != nil {
			return n, err
		}
		if !ok {
			continue
		}
		r, ok, err := selectOfAccount.ForUpdate().Maybe(tx, live.AccountID, live.ID)
		if err != nil {
			return n, err
		}
		if !ok || r.EndedAt != nil {
			continue
		}
		if err := s.end(tx, &r, Lost, kind, text); err != nil {
			return n, err
		}
		s.fence(tx, &r)
		if err := s.Tasks.AttemptFailed(tx, &t, kind, text); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
