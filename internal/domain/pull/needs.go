package pull

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// NeedsOf answers the needs of pull requests of tx.Account, by id of the pull request.
func NeedsOf(tx *db.Tx, prIDs []string) (map[string]record.Need, error) {
	out := map[string]record.Need{}
	if len(prIDs) == 0 {
		return out, nil
	}
	rows, err := record.Needy(tx, prIDs)
	for _, r := range rows {
		if n, ok := r.Need(); ok {
			out[r.ID] = n
		}
	}
	return out, err
}

// atHead locks an open pull request for a decision about a head. It fails with
// fault.NotFound, and with the reasons pr_not_open and head_moved.
func atHead(tx *db.Tx, prID, headSHA string) (*record.Pull, error) {
	pr, ok, err := record.Lock(tx, prID)
	switch {
	case err != nil:
		return pr, err
	case !ok:
		return pr, fault.Missing("pull request")
	case pr.HeadSHA != headSHA:
		return pr, movedTo(pr.HeadSHA)
	case pr.State != record.Open:
		return pr, fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	}
	return pr, nil
}

// movedTo is the refusal of a call that names another head than the present one.
func movedTo(head string) *fault.Error {
	return fault.Reason("head_moved", "The pull request has a newer head than the one named.").With("current_head_sha", head)
}

// atGreenHead is atHead for a decision that needs a head with passed checks. The caller
// takes over a pull request that was kept although its task was cancelled.
func atGreenHead(tx *db.Tx, prID, headSHA string) (*record.Pull, error) {
	pr, err := atHead(tx, prID, headSHA)
	if err != nil {
		return pr, err
	}
	if !record.Passed(pr.Checks) {
		return pr, fault.Reason("checks_not_passed", "The checks of this head are "+pr.Checks+".")
	}
	if pr.AbandonedAt == nil {
		return pr, nil
	}
	return pr, babysit.Adopt(tx, pr)
}

// decide answers the question about a head. It fails with head_moved if the head of the
// decision is not the present one.
func (s *Service) decide(tx *db.Tx, in decideIn, state string) (record.Action, error) {
	if other, ok, err := s.otherOf(tx, in); err != nil || ok {
		if err != nil {
			return record.Action{}, err
		}
		return s.decideOther(tx, in, other, state)
	}
	pr, err := atHead(tx, in.ID, in.HeadSHA)
	if err != nil {
		return record.Action{}, err
	}
	a, ok, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil {
		return record.Action{}, err
	}
	if !ok || a.State != record.ActionPending || a.HeadSHA != pr.HeadSHA || !tx.Now.Before(a.ExpiresAt) {
		return record.Action{}, fault.Reason("no_pending_action", "Nothing on this head waits for a decision.")
	}
	if err := in.means(a, state); err != nil {
		return record.Action{}, err
	}
	return s.answer(tx, pr, a, state)
}

// means refuses an answer to another question than the open one. It also refuses a yes
// that does not name the question if that names something: the person may
// have read an earlier question about the same head.
func (in decideIn) means(a record.Action, state string) error {
	if in.ActionID == a.ID || in.ActionID == "" && (!a.Names() || state != record.ActionApproved) {
		return nil
	}
	return fault.Reason("question_changed", "Another question is open, or one that has to be named in action_id: read it first.").
		With("action_id", a.ID).With("question", a.Wire().Question)
}

// answer records the answer of the actor of tx to an open question.
func (s *Service) answer(tx *db.Tx, pr *record.Pull, a record.Action, state string) (record.Action, error) {
	a, err := s.Answer(tx, pr, a, state, policy.From(tx.Context()).Label())
	if err != nil {
		return a, err
	}
	return a, s.Move(tx, pr)
}

type decideIn struct {
	ID       string `json:"id" format:"uuid" doc:"id of the pull request"`
	HeadSHA  string `json:"head_sha" pattern:"^[0-9a-f]{40}$" says:"must be the 40 hexadecimal digits of a commit" doc:"the head that was looked at; another one is refused"`
	ActionID string `json:"action_id,omitempty" format:"uuid" doc:"pending_action.id of the question that was read; another one is refused. A yes about what is protected wants it"`
}

// Decision is an answer, with the question that it is about.
type Decision struct {
	_      struct{}             `doc:"The question as it was decided." schema:"Decision"`
	Action record.PendingAction `json:"action" doc:"the question, with its state"`
}

func (s *Service) approve(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (record.Action, error) { return s.decide(tx, in, record.ActionApproved) })
}

func (s *Service) skip(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (record.Action, error) { return s.decide(tx, in, record.ActionSkipped) })
}

// askAgain asks again about a head whose question was declined or expired, or that the
// policy leaves to people.
func (s *Service) askAgain(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (record.Action, error) {
		pr, err := atGreenHead(tx, in.ID, in.HeadSHA)
		if err != nil {
			return record.Action{}, err
		}
		if a, open, err := record.OpenAction.Maybe(tx, pr.ID); err != nil || open && tx.Now.Before(a.ExpiresAt) {
			return a, err
		} else if open {
			if _, err := s.Expired(tx, pr, a.ID, a.HeadSHA); err != nil {
				return a, err
			}
		}
		pr.LookedSHA = ""
		if err := record.Save(tx, pr); err != nil {
			return record.Action{}, err
		}
		if err := s.Question(tx, pr, nil); err != nil {
			return record.Action{}, err
		}
		if err := s.Move(tx, pr); err != nil {
			return record.Action{}, err
		}
		return record.OpenAction.One(tx, pr.ID)
	})
}

// merge orders the merge of a head, with or without an open question. Before the merge, a
// person is asked about protected changes that the caller was not asked about.
func (s *Service) merge(ctx context.Context, in decideIn) (Decision, error) {
	return s.decided(ctx, func(tx *db.Tx) (record.Action, error) {
		pr, err := atGreenHead(tx, in.ID, in.HeadSHA)
		if err != nil {
			return record.Action{}, err
		}
		switch a, open, err := record.OpenAction.Maybe(tx, pr.ID); {
		case err != nil || open && a.State == record.ActionApproved:
			return a, err
		case open && tx.Now.Before(a.ExpiresAt):
			if err := in.means(a, record.ActionApproved); err != nil {
				return record.Action{}, err
			}
			return s.answer(tx, pr, a, record.ActionApproved)
		case open:
			if _, err := s.Expired(tx, pr, a.ID, a.HeadSHA); err != nil {
				return a, err
			}
		}
		if err := s.Order(tx, pr, policy.From(ctx).Label()); err != nil {
			return record.Action{}, err
		}
		if err := s.Move(tx, pr); err != nil {
			return record.Action{}, err
		}
		return record.OpenAction.One(tx, pr.ID)
	})
}

func (s *Service) decided(ctx context.Context, decide func(*db.Tx) (record.Action, error)) (out Decision, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		a, err := decide(tx)
		out = Decision{Action: a.Wire()}
		return err
	})
	return out, err
}
