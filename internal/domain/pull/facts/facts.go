// Package facts reads all that the next step of a pull request depends on. It is the one place
// that knows where each fact of package moves is stored.
package facts

import (
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// Reader reads facts.
type Reader struct {
	tasks Tasks
	queue Queue
}

// New makes a Reader.
func New(tasks Tasks, queue Queue) *Reader { return &Reader{tasks: tasks, queue: queue} }

// Tasks is the part of tasks that facts are of. All tasks are of tx.Account.
type Tasks interface {
	// Unmerged answers the task on whose work the given task was begun, while that
	// work is not merged, else ""; dropped tells that the work never will be.
	Unmerged(tx *db.Tx, taskID string) (on string, dropped bool, err error)
	// ByLent tells whether a box that another account has lent has had a run of a task, or
	// of one about a pull request; taskID may be "".
	ByLent(tx *db.Tx, taskID, prID string) (bool, error)
}

// Queue is the part of merge queues that facts are of.
type Queue interface {
	// Places answers the places of pull requests of tx.Account in queues, by id.
	Places(tx *db.Tx, prIDs []string) (map[string]record.QueuePlace, error)
}

// Moving is a pull request with what its next step depends on.
type Moving struct {
	*record.Pull
	Repo  repo.Ref
	Facts moves.Facts
	Step  moves.Step
}

// Look reads the row of a pull request anew, and its next step; false if there is none of its id.
func (s *Reader) Look(tx *db.Tx, pr *record.Pull) (m Moving, ok bool, err error) {
	m.Pull = pr
	if *pr, ok, err = record.ByID.Maybe(tx, tx.Account, pr.ID); err != nil || !ok {
		return m, false, err
	}
	if m.Repo, _, err = repo.ByID(tx, m.RepoID); err != nil {
		return m, false, err
	}
	if err := s.askOfLent(tx, &m); err != nil {
		return m, false, err
	}
	if m.Facts, err = s.FactsOf(tx, m.Repo, m.Pull); err != nil {
		return m, false, err
	}
	m.Step = Next(m.Facts, Rules(m.Repo))
	return m, true, nil
}

// askOfLent has people asked about a merge that no policy file may leave to agents: one of what
// a box has made, checked or reviewed that another account has lent.
func (s *Reader) askOfLent(tx *db.Tx, m *Moving) error {
	if m.Repo.Policy.Merge.Mode != "auto" {
		return nil
	}
	work := ""
	if m.TaskID != nil {
		work = *m.TaskID
	}
	lent, err := s.tasks.ByLent(tx, work, m.ID)
	if lent {
		m.Repo.Policy.Merge.Mode = "ask"
	}
	return err
}

// Next is the next step, beside that a merge queue lets go of an order which does not stand:
// it does so by itself, see record.StandingOrders.
func Next(f moves.Facts, rules moves.Rules) moves.Step {
	step := moves.Next(f, rules)
	if step.Do == moves.DoWithdraw {
		f.Turn, f.Act = moves.TurnFree, moves.NoAct
		step = moves.Next(f, rules)
	}
	return step
}

// Ordered tells whether a step is one of a merge that is ordered.
func Ordered(s moves.Step) bool {
	switch s.Do {
	case moves.DoMerge, moves.DoEnter:
		return true
	case moves.DoWait:
		return slices.Contains([]string{moves.ForBelow, moves.ForTurn, moves.ForGrace, moves.ForIntent, moves.ForMerge}, s.Of)
	}
	return false
}

// Rules are the rules of a repository for its pull requests.
func Rules(r repo.Ref) moves.Rules {
	out := moves.Rules{Mode: moves.ModeAsk, Reviewer: moves.ReviewUnasked, OnCancel: moves.CancelCloses, Pushes: moves.PushesAsk}
	switch r.Policy.Merge.Mode {
	case "auto":
		out.Mode = moves.ModeAuto
	case "never":
		out.Mode = moves.ModeNever
	}
	if r.Policy.Review.Mode == "auto" {
		out.Reviewer = moves.ReviewAuto
	}
	if r.Policy.Merge.OnCancel == "keep" {
		out.OnCancel = moves.CancelKeeps
	}
	switch r.Policy.Pulls.Push {
	case "auto":
		out.Pushes = moves.PushesAuto
	case "never":
		out.Pushes = moves.PushesNever
	}
	return out
}

// FactsOf reads the facts of a pull request.
func (s *Reader) FactsOf(tx *db.Tx, r repo.Ref, pr *record.Pull) (f moves.Facts, err error) {
	pr.PlainFacts(r, &f)
	switch {
	case pr.FactsHave < pr.FactsWant:
		f.Known = moves.Unread
	case pr.Mergeable == "unknown":
		f.Known = moves.NoBase
	}
	pr.ReviewFacts(r, &f)
	pr.RoundFacts(tx, &f)
	below, dropped, err := s.Below(tx, pr)
	if err != nil {
		return f, err
	}
	if f.Under = moves.NoneBelow; below != "" && !dropped {
		f.Under = moves.UnmergedBelow
	}
	if !dropped {
		below = ""
	}
	if err := s.askedFacts(tx, r, pr, below, &f); err != nil {
		return f, err
	}
	if err := pr.OtherFacts(tx, &f); err != nil {
		return f, err
	}
	if pr.Unreadable && f.Known.Is(moves.Unread) {
		f.Host = moves.HostRefuses
	}
	return f, s.placeFacts(tx, r, pr, &f)
}

// Below is the task on whose work the head of a pull request was begun, while that is not
// merged; "": there is none. Dropped tells that it never will be.
func (s *Reader) Below(tx *db.Tx, pr *record.Pull) (on string, dropped bool, err error) {
	if pr.TaskID == nil {
		return "", false, nil
	}
	if on, dropped, err = s.tasks.Unmerged(tx, *pr.TaskID); err != nil || !dropped {
		return on, false, err
	}
	// A person may have merged the work of a task that was cancelled.
	if _, merged, err := record.MergedOfTask.Maybe(tx, tx.Account, on); err != nil || merged {
		return "", false, err
	}
	return on, true, nil
}
