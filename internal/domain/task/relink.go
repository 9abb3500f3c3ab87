package task

import (
	"maps"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// JoinPlan makes a task part of a plan, or of another group of the plan. It writes the
// row and changes t.
func JoinPlan(tx *db.Tx, t *Row, planID string, groupID *string) error {
	t.PlanID, t.GroupID = &planID, groupID
	_, err := joinPlan.Exec(tx, joinPlanArgs{AccountID: t.AccountID, ID: t.ID, PlanID: planID, GroupID: groupID})
	return err
}

// OfPlan lists the tasks of a plan, oldest first.
func OfPlan(tx *db.Tx, planID string) ([]Row, error) {
	return selectOfPlan.All(tx, tx.Account, planID)
}

// Relink removes the dependencies in drop from a locked task and adds those in add,
// which have to be locked as well. A pending or held task counts again what it waits
// for. A task that failed because of a dependency, and has no such dependency left, goes
// back into the queue with the tasks that failed because of it; Relink returns the ids
// of them all. A task in flight, or over for another reason, keeps its state. The caller
// refuses cycles, see Reaches.
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
		if err := lockFollowers(tx, t); err != nil {
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

// Reaches returns a task of to that a task of from depends on, directly or through
// others, or that is in from itself; "" if there is none.
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
