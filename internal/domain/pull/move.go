package pull

import (
	"fmt"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// Whatever changes a pull request does three things: it locks the row, changes facts, and
// calls move. What happens next is decided by the table of package moves alone.

// mostMoves limits the steps of one move. The table has no circle of steps without a change
// from outside, so that no pull request comes near it.
const mostMoves = 12

// move takes the next steps of a locked pull request, until something outside of the
// transaction is to happen. It says then what is waited for, and leaves the row as it is by then.
func (s *Service) move(tx *db.Tx, pr *record.Pull) error {
	for range mostMoves {
		m, ok, err := s.look(tx, pr)
		if err != nil || !ok {
			return err
		}
		if again, err := s.step(tx, &m); err != nil || again {
			if err != nil {
				return err
			}
			continue
		}
		return s.rest(tx, m)
	}
	return fmt.Errorf("the steps of pull request %s do not end", pr.ID)
}

// moving is a pull request with what its next step depends on.
type moving struct {
	*record.Pull
	repo  repo.Ref
	facts moves.Facts
	step  moves.Step
}

// look reads the row of a pull request anew, and its next step; false if there is none of its id.
func (s *Service) look(tx *db.Tx, pr *record.Pull) (m moving, ok bool, err error) {
	m.Pull = pr
	if *pr, ok, err = record.ByID.Maybe(tx, tx.Account, pr.ID); err != nil || !ok {
		return m, false, err
	}
	if m.repo, _, err = repo.ByID(tx, m.RepoID); err != nil {
		return m, false, err
	}
	if err := s.askOfLent(tx, &m); err != nil {
		return m, false, err
	}
	if m.facts, err = s.factsOf(tx, m.repo, m.Pull); err != nil {
		return m, false, err
	}
	m.step = nextOf(m.facts, rulesOf(m.repo))
	return m, true, nil
}

// askOfLent has people asked about a merge that no policy file may leave to agents: one of what
// a box has made, checked or reviewed that another account has lent.
func (s *Service) askOfLent(tx *db.Tx, m *moving) error {
	if m.repo.Policy.Merge.Mode != "auto" {
		return nil
	}
	work := ""
	if m.TaskID != nil {
		work = *m.TaskID
	}
	lent, err := s.Tasks.ByLent(tx, work, m.ID)
	if lent {
		m.repo.Policy.Merge.Mode = "ask"
	}
	return err
}

// nextOf is the next step, beside that a merge queue lets go of an order which does not stand:
// it does so by itself, see record.StandingOrders.
func nextOf(f moves.Facts, rules moves.Rules) moves.Step {
	step := moves.Next(f, rules)
	if step.Do == moves.DoWithdraw {
		f.Turn, f.Act = moves.TurnFree, moves.NoAct
		step = moves.Next(f, rules)
	}
	return step
}

// step takes a step that needs nothing but the database; again tells that facts have
// changed by it. The other steps are for the passes of Loop. A round for which the queue of the
// account has no room is waited for.
func (s *Service) step(tx *db.Tx, m *moving) (again bool, err error) {
	switch m.step.Do {
	case moves.DoTakeOver:
		return true, s.carry(tx, m.Pull)
	case moves.DoAsk:
		return s.askMerge(tx, m.Pull)
	case moves.DoStopWork:
		return true, s.stopWork(tx, m.Pull)
	case moves.DoRepair:
		again, full, err := s.attend(tx, m.repo, m.Pull, m.step.Of)
		if full {
			m.facts.Seat = moves.SeatFull
			m.step = nextOf(m.facts, rulesOf(m.repo))
		}
		return again, err
	case moves.DoClose:
		if m.step.Of == moves.Cancelled {
			return true, s.close(tx, m.Pull, record.ClosedCancelled, by(tx))
		}
	case moves.DoLook:
		s.Hub.Notify(tx, event.PullTopic)
	}
	if isOrdered(m.step) {
		return false, s.orderGoesOn(tx, *m)
	}
	return false, nil
}

// isOrdered tells whether a step is one of a merge that is ordered.
func isOrdered(s moves.Step) bool {
	switch s.Do {
	case moves.DoMerge, moves.DoEnter:
		return true
	case moves.DoWait:
		return slices.Contains([]string{moves.ForBelow, moves.ForTurn, moves.ForGrace, moves.ForIntent, moves.ForMerge}, s.Of)
	}
	return false
}

// askMerge asks a person about the merge of a head, in place of what was asked or ordered
// before; false if it is asked already.
func (s *Service) askMerge(tx *db.Tx, pr *record.Pull) (bool, error) {
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil {
		return false, err
	}
	if open {
		if err := s.replace(tx, pr, a); err != nil {
			return false, err
		}
	}
	last, _, err := record.LastAsked.Maybe(tx, pr.ID, pr.HeadSHA)
	if err != nil {
		return false, err
	}
	if last.Protected != nil {
		return true, s.question(tx, pr, &last.Protected.V)
	}
	pr.LookedSHA = ""
	if err := record.Save(tx, pr); err != nil {
		return false, err
	}
	return true, s.question(tx, pr, nil)
}

// replace ends an open action that another one takes the place of.
func (s *Service) replace(tx *db.Tx, pr *record.Pull, a record.Action) error {
	if n, err := record.Replaced.Exec(tx, a.ID, tx.Micros()); err != nil || n == 0 {
		return err
	}
	s.orderEnded(tx, a)
	return record.StaleEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
}

// endQuestions ends all that is asked, or ordered, about a pull request.
func (s *Service) endQuestions(tx *db.Tx, pr *record.Pull) error {
	return s.ended(tx, pr, func() error {
		_, err := record.StaleActions.Exec(tx, pr.ID, tx.Micros())
		return err
	})
}

// ended records the end of all that is asked, or ordered, about a pull request, which end
// makes stale.
func (s *Service) ended(tx *db.Tx, pr *record.Pull, end func() error) error {
	open, err := record.OpenAll.All(tx, pr.ID)
	if err != nil || len(open) == 0 {
		return err
	}
	if err := end(); err != nil {
		return err
	}
	for _, a := range open {
		s.orderEnded(tx, a)
		about := event.Subject{ID: a.ID, RepoID: pr.RepoID}
		if err := record.StaleEvent.Record(tx, about, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
			return err
		}
	}
	return nil
}

// orderGoesOn has the merge of a head carried out that was ordered: by an approval of a
// person, here or at the code host, or by the policy.
func (s *Service) orderGoesOn(tx *db.Tx, m moving) error {
	a, open, err := record.OpenAction.Maybe(tx, m.ID)
	switch {
	case err != nil:
		return err
	case open && m.step.Do == moves.DoMerge:
		s.orders.Add(tx, a.ID, due.Entry{Account: tx.Account})
		return nil
	case open:
		return nil
	case m.facts.Yes.Is(moves.NoYes):
		return s.order(tx, m.Pull, record.ByPolicy)
	}
	who, ok, err := record.Standing.Maybe(tx, m.ID, m.HeadSHA)
	if err != nil || !ok {
		return err
	}
	return s.orderOf(tx, m.Pull, who)
}

// task is what the task of a pull request is told of a step; "": nothing new.
func (m moving) task() string {
	switch {
	case m.step.Do == moves.DoDone:
		return ""
	case isOrdered(m.step):
		return record.ToldMergeable
	case m.step.Do == moves.DoPerson && slices.Contains([]string{moves.NeedRearm, moves.NeedRetry, moves.NeedHands}, m.step.Of):
		return record.ToldStuck
	case m.step.Do == moves.DoPerson && record.Passed(m.Checks) && m.ChecksHold == "":
		return record.ToldAwaitsReview
	}
	return m.unordered()
}

// unordered is what the task of a pull request is told whose merge is not ordered.
func (m moving) unordered() string {
	if m.Mergeable == "conflict" || !record.Passed(m.Checks) || m.ChecksHold != "" {
		return record.ToldAwaits
	}
	return record.ToldAwaitsReview
}

// rest says what a pull request waits for: the reason why a person is needed, when the
// clock moves it on, and what its task, and people, are told of that.
func (s *Service) rest(tx *db.Tx, m moving) error {
	looks := m.step.Do == moves.DoLook
	if looks { // until git has answered, nothing new is said to be in its way
		m.facts.Known = moves.Read
		m.step = nextOf(m.facts, rulesOf(m.repo))
	}
	needs, told, at := "", m.task(), int64(0)
	full := m.step == moves.Step{Do: moves.DoWait, Of: moves.ForSeat}
	if m.step.Do == moves.DoPerson {
		needs = m.step.Of
	}
	if looks && told == record.ToldMergeable {
		if _, ordered, err := record.OpenAction.Maybe(tx, m.ID); err != nil {
			return err
		} else if !ordered {
			told = m.unordered()
		}
	}
	switch {
	case looks: // the pass that reads moves it
	case m.step == moves.Step{Do: moves.DoWait, Of: moves.ForRest}:
		at = m.AttendAt
	case m.step.Do == moves.DoRepair:
		at = max(m.AttendAt, tx.Micros()) // each pass tries again
	case full:
		at = db.Micros(tx.Now.Add(sweep))
	}
	if told == "" {
		told = m.Told
	}
	if needs == m.Needs && told == m.Told && at == m.MoveAt && full == (m.SeatSince != nil) {
		return nil
	}
	neededBefore, toldBefore := m.Needs, m.Told
	m.Rests(needs, full, tx.Now)
	m.Told, m.MoveAt = told, at
	if err := record.Save(tx, m.Pull); err != nil {
		return err
	}
	if err := s.help(tx, m, neededBefore, needs); err != nil {
		return err
	}
	if told == toldBefore && !(told == record.ToldStuck && needs != neededBefore) || m.TaskID == nil {
		return nil
	}
	p := record.Progress{TaskID: *m.TaskID, PRID: m.ID}
	switch told {
	case record.ToldAwaits:
		return record.TaskAwaits.Send(tx, p)
	case record.ToldAwaitsReview:
		return record.TaskAwaitsReview.Send(tx, p)
	case record.ToldMergeable:
		return record.TaskMergeable.Send(tx, p)
	}
	if toldBefore == record.ToldMergeable {
		signal := record.TaskAwaits
		if m.unordered() == record.ToldAwaitsReview {
			signal = record.TaskAwaitsReview
		}
		if err := signal.Send(tx, p); err != nil {
			return err
		}
	}
	f := m.failing()
	p.FailureKind, p.Why = f.kind, f.why
	return record.TaskStuck.Send(tx, p)
}
