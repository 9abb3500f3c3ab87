package task

import (
	"maps"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// JoinPlan makes a task part of a plan, or of another group of it. The task's
// row is written; t follows.
func JoinPlan(tx *db.Tx, t *Row, planID string, groupID *string) error {
	t.PlanID, t.GroupID = &planID, groupID
	_, err := joinPlan.Exec(tx, joinPlanArgs{AccountID: t.AccountID, ID: t.ID, PlanID: planID, GroupID: groupID})
	return err
}

// OfPlan lists the tasks of a plan, oldest first.
func OfPlan(tx *db.Tx, planID string) ([]Row, error) {
	return selectOfPlan.All(tx, tx.Account, planID)
}

// Relink changes what a locked task waits for: it no longer depends on the
// tasks in drop, and does on those in add. A task that waits is told how many
// of them it still waits for. One that failed only because a dependency did,
// and has no such dependency left, goes back into the queue, and so do those
// that failed because of it: their ids are answered, with its own. What is in
// flight or over keeps its state. Those in add are locked, too.
//
// Cycles are the caller's to refuse, see Reaches.
func (s *Service) Relink(tx *db.Tx, t *Row, add, drop []string) (released []string, err error) {
	add = slices.Compact(slices.Sorted(slices.Values(add)))
	for _, d := range drop {
		if _, err := deleteDep.Exec(tx, t.ID, d); err != nil {
			return nil, err
		}
	}
	for _, d := range add {
		if _, err := addDep.Exec(tx, t.ID, d); err != nil {
			return nil, err
		}
	}
	up, err := selectUpstream.All(tx, t.ID)
	if err != nil {
		return nil, err
	}
	var waits int64
	for _, u := range up {
		if !u.Status.succeeded() {
			waits++
		}
	}
	switch {
	case t.Status == Failed && t.FailureKind != nil && *t.FailureKind == DependencyFailed:
		lost, _, err := lostUpstream(tx, t.ID)
		if err != nil || lost != "" {
			return nil, err
		}
		if err := holdBelow(tx, t); err != nil {
			return nil, err
		}
		released, err = revive(s, tx, t, releasedEvent, releasedData{Because: "relinked"})
		return append([]string{t.ID}, released...), err
	case t.Status != Pending && t.Status != Held || waits == t.WaitingDeps:
		return nil, nil
	}
	t.WaitingDeps = waits
	if err := store(tx, t, t.Status); err != nil {
		return nil, err
	}
	s.Hub.Notify(tx, event.QueueTopic(t.AccountID), AnyQueue)
	return nil, nil
}

// Reaches tells which of the tasks in to can be come to from the tasks in from
// by walking from task to dependency; "" if none.
func Reaches(tx *db.Tx, from, to []string) (string, error) {
	want := map[string]bool{}
	for _, t := range to {
		want[t] = true
	}
	seen := map[string]bool{}
	for len(from) > 0 {
		for _, t := range from {
			if want[t] {
				return t, nil
			}
			seen[t] = true
		}
		up, err := upstreams(tx, from)
		if err != nil {
			return "", err
		}
		next := map[string]bool{}
		for _, list := range up {
			for _, u := range list {
				if !seen[u] {
					next[u] = true
				}
			}
		}
		from = slices.Sorted(maps.Keys(next))
	}
	return "", nil
}
