package task

import (
	"maps"
	"slices"

	"yardmaster/internal/db"
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
	s.Hub.Notify(tx, queueTopic(t.AccountID), AnyQueue)
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

// LiveBox tells whether an online box that serves the account can hold a live
// session, one that a person can talk to, with the agent of a template in a
// repository. The agent command cannot: it takes no messages.
func (s *Service) LiveBox(tx *db.Tx, repo Repo, template string) (bool, error) {
	n, ok, err := s.Template(tx, tx.Account, template)
	if err != nil || !ok || n.Agent == "command" {
		return false, err
	}
	n.Isolation = Stricter(n.Isolation, repo.Isolation)
	fleet, err := selectFleet.All(tx, tx.Account)
	for _, r := range fleet {
		if b := r.box(); r.isBox() && b.Online && b.Enrolled && b.hasAgent(n) && b.isolates(n) {
			return true, err
		}
	}
	return false, err
}

// Place is the 1-based place of a task that Create has just made in this
// transaction, the last of its lane.
func Place(tx *db.Tx, t *Row) (int64, error) {
	lanes, err := lanesOf(tx, t.AccountID)
	if err != nil {
		return 0, err
	}
	q, own := lineOf(lanes), t.lane()
	return q.ahead(own, q.ready(own)) + 1, nil
}
