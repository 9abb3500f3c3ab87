package box

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// ownerOps are the capabilities of people whose work boxes take. Nothing but a session of
// the person's own agrees, not one of an account's identity provider, which has no such
// scope, and no token.
func (s *Service) ownerOps() []op.Op {
	mine, agrees := policy.Require(policy.SelfKeys).OfUser(), policy.Require(policy.SelfKeys).OfSession()
	const answer = "/v1/me/runners/{id}/accounts/{account_id}"
	return []op.Op{
		op.New(op.Row{ID: "self.runner_list", Method: "GET", Path: "/v1/me/runners", Group: group, Rule: mine,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The boxes that take the caller's work alone, and those that the caller was asked to own",
			Doc:     "With every account that the caller belongs to, and whether the box takes the caller's work there. In the account that the box is enrolled in it does once the caller owns it; elsewhere once the caller has agreed, and that account lets boxes from outside in (account.floors_set)."}, s.runners),
		op.New(op.Row{ID: "self.runner_agree", Method: "PUT", Path: answer, Group: group, Rule: agrees,
			Refuses: []op.Refusal{{Status: 403, Slug: "reauth-required"}, {Status: 409, Slug: "not-your-box"}},
			Summary: "Agree that a box takes the caller's work in one account; again agrees anew",
			Doc:     "For the account that the box is enrolled in this answers box.set_owner: the box is the caller's from then on. For another one the box must be the caller's. Whoever runs that box sees the code, the secrets and the tokens of what it takes. Takes a session that signed in within the last hour."}, s.agree),
		op.New(op.Row{ID: "self.runner_withdraw", Method: "DELETE", Path: answer, Group: group, Rule: mine,
			Summary: "Take back what self.runner_agree agreed to, or decline; again is no error",
			Doc:     "What the box holds of that account goes back into the queue at once. For the account that the box is enrolled in, the box takes that account's work again, and the caller's nowhere else."}, s.withdraw),
	}
}

// Runner is a box that takes the work of one person, as that person sees it.
type Runner struct {
	_        struct{}        `doc:"A box that takes the caller's work alone, or is to." schema:"Runner"`
	ID       string          `json:"id" format:"uuid" doc:"id of the box"`
	Name     string          `json:"name" example:"build-3" doc:"name of the box"`
	Mine     bool            `json:"mine" doc:"whether it takes the caller's work alone; false: the caller was asked"`
	Accounts []RunnerAccount `json:"accounts" doc:"the account that it is enrolled in, and then, if it is the caller's, every other account of the caller"`
}

// RunnerAccount is what a person has agreed to about a box and an account.
type RunnerAccount struct {
	_        struct{}   `doc:"What the caller has agreed to about a box and an account." schema:"RunnerAccount"`
	ID       string     `json:"id" format:"uuid" doc:"id of the account"`
	Login    string     `json:"login" example:"acme" doc:"login of the account"`
	Home     bool       `json:"home" doc:"whether the box is enrolled there"`
	AskedBy  *string    `json:"asked_by" example:"user:ada" doc:"who has asked the caller to own the box; null: nobody, or the caller has answered"`
	AgreedAt *time.Time `json:"agreed_at" doc:"when the caller agreed; null: not, or the box is enrolled there and was made the caller's by the caller"`
	LetsIn   bool       `json:"lets_in" doc:"whether the account lets boxes of other accounts in"`
	Works    bool       `json:"works" doc:"whether the box takes the caller's work there"`
}

func (s *Service) runners(ctx context.Context, in op.PageIn) (out op.Page[Runner], err error) {
	var all []Runner
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		user := policy.From(ctx).UserID
		rows, err := ofUser.All(tx, user)
		if err != nil {
			return err
		}
		all, err = runnersOf(tx, rows, user)
		return err
	})
	return op.Cut(in, all, func(r Runner) []string { return []string{r.ID} }), err
}

// runnersOf are boxes as a user sees them, with what the user has said.
func runnersOf(tx *db.Tx, boxes []row, user string) ([]Runner, error) {
	answers, err := selectAnswers.All(tx, user)
	if err != nil {
		return nil, err
	}
	accounts, err := people.Memberships(tx, user)
	if err != nil {
		return nil, err
	}
	ids, out := idsOf(boxes), make([]Runner, len(boxes))
	for i, r := range boxes {
		out[i] = Runner{ID: r.ID, Name: r.Name, Mine: r.isOf(user), Accounts: []RunnerAccount{}}
	}
	for _, m := range accounts {
		letsIn, err := fleet.LetsIn(tx, m.AccountID)
		if err != nil {
			return nil, err
		}
		rights, err := fleet.Rights(tx, m.AccountID, ids)
		if err != nil {
			return nil, err
		}
		for i, r := range boxes {
			home, of := m.AccountID == r.AccountID, &out[i]
			if !home && !of.Mine {
				continue
			}
			_, holds := rights[r.ID]
			a := RunnerAccount{ID: m.AccountID, Login: m.Login, Home: home, Works: holds && of.Mine, LetsIn: letsIn}
			for _, w := range answers {
				if w.BoxID != r.ID || w.AccountID != m.AccountID {
					continue
				}
				if a.AgreedAt = w.AgreedAt; w.AgreedAt == nil {
					a.AskedBy = &w.AskedBy
				}
			}
			if home {
				of.Accounts = append([]RunnerAccount{a}, of.Accounts...)
			} else {
				of.Accounts = append(of.Accounts, a)
			}
		}
	}
	return out, nil
}

// isOf tells whether the box takes the work of one user alone, and of this one.
func (r *row) isOf(user string) bool {
	return r.OwnerTarget == User && r.OwnerID != nil && *r.OwnerID == user
}

type runnerIn struct {
	ID        string `json:"id" format:"uuid" doc:"id of the box"`
	AccountID string `json:"account_id" format:"uuid" doc:"id of the account whose work it is about"`
}

// theirs finds a box, locked, and an account, of both of whose accounts a user is a member.
func theirs(tx *db.Tx, in runnerIn, user string) (row, error) {
	if !id.Valid(in.ID) {
		return row{}, fault.Missing("box")
	}
	r, ok, err := byIdentity.ForUpdate().Maybe(tx, in.ID)
	if err != nil {
		return r, err
	}
	if ok && r.State != Revoked {
		_, ok, err = people.Role(tx, r.AccountID, user)
	}
	if err == nil && (!ok || r.State == Revoked) {
		err = fault.Missing("box")
	}
	if err != nil {
		return r, err
	}
	if _, ok, err = people.Role(tx, in.AccountID, user); err == nil && !ok {
		err = fault.Missing("account")
	}
	return r, err
}

func (s *Service) agree(ctx context.Context, in runnerIn) (out Runner, err error) {
	a := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := a.Present(tx.Now); err != nil {
			return err
		}
		r, err := theirs(tx, in, a.UserID)
		if err != nil {
			return err
		}
		notYours := fault.Reason("not-your-box", "The box is not yours, and nobody asks you to take it.")
		switch home := in.AccountID == r.AccountID; {
		case home && r.isOf(a.UserID): // so it is
			out, err = shown(tx, &r, a.UserID)
			return err
		case home:
			_, asked, err := selectAnswer.Maybe(tx, r.ID, r.AccountID, a.UserID)
			if err != nil {
				return err
			}
			if !asked {
				return notYours
			}
			if err := s.own(tx, &r, User, &a.UserID); err != nil {
				return err
			}
		case !r.isOf(a.UserID):
			return notYours
		default:
			if err := s.tell(tx, consentGiven, &r, in.AccountID, a.UserID); err != nil {
				return err
			}
		}
		if err := answered(tx, askArgs{BoxID: r.ID, AccountID: in.AccountID, UserID: a.UserID, AskedBy: a.Label()}, true); err != nil {
			return err
		}
		out, err = shown(tx, &r, a.UserID)
		return err
	})
	return out, err
}

func (s *Service) withdraw(ctx context.Context, in runnerIn) (out Runner, err error) {
	user := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := theirs(tx, in, user)
		if err != nil {
			return err
		}
		home := in.AccountID == r.AccountID
		if home && r.isOf(user) {
			if err := s.own(tx, &r, Org, &r.AccountID); err != nil {
				return err
			}
			out, err = shown(tx, &r, user)
			return err
		}
		was, known, err := selectAnswer.Maybe(tx, r.ID, in.AccountID, user)
		if err != nil {
			return err
		}
		if _, err := deleteAnswer.Exec(tx, r.ID, in.AccountID, user); err != nil {
			return err
		}
		switch {
		case known && home:
			err = ownerDeclined.Record(tx, event.Subject{ID: r.ID, Account: r.AccountID}, askedData{UserID: user})
		case known && was.AgreedAt != nil:
			if err = s.Runs.TakeBack(tx, r.ID); err == nil {
				err = s.tell(tx, consentTaken, &r, in.AccountID, user)
			}
		}
		if err != nil {
			return err
		}
		out, err = shown(tx, &r, user)
		return err
	})
	return out, err
}

// RightsChanged forgets what a user was asked and has agreed to about boxes, for an account, if they do
// not belong to it or to that of the box any more. What such a box holds by it, it gives back. It is a
// subscriber of event.RightsChanged.
func (s *Service) RightsChanged(tx *db.Tx, userID string) error {
	answers, err := selectAnswers.All(tx, userID)
	if err != nil {
		return err
	}
	for _, w := range answers {
		r, err := byIdentity.One(tx, w.BoxID)
		if err != nil {
			return err
		}
		_, home, err := people.Role(tx, r.AccountID, userID)
		if err != nil {
			return err
		}
		_, here, err := people.Role(tx, w.AccountID, userID)
		if err != nil {
			return err
		}
		if here && home {
			continue
		}
		if _, err := deleteAnswer.Exec(tx, r.ID, w.AccountID, userID); err != nil {
			return err
		}
		if w.AgreedAt == nil || w.AccountID == r.AccountID {
			continue
		}
		if err := s.Runs.TakeBack(tx, r.ID); err != nil {
			return err
		}
		if err := s.tell(tx, consentTaken, &r, w.AccountID, userID); err != nil {
			return err
		}
	}
	return nil
}

// answered notes what a user was asked about a box and an account, and whether they agree.
func answered(tx *db.Tx, a askArgs, agrees bool) error {
	if a.AskedAt = tx.Micros(); agrees {
		a.AgreedAt = &a.AskedAt
	}
	_, err := putAnswer.Exec(tx, a)
	return err
}

// shown is a box after a change, as the user sees it.
func shown(tx *db.Tx, r *row, user string) (Runner, error) {
	all, err := runnersOf(tx, []row{*r}, user)
	if err != nil {
		return Runner{}, err
	}
	return all[0], nil
}

// tell records, in the account of the box and in the one that it is about, what its owner
// has said.
func (s *Service) tell(tx *db.Tx, kind event.Kind[consentData], r *row, account, user string) error {
	for _, of := range []string{r.AccountID, account} {
		if err := kind.Record(tx, event.Subject{ID: r.ID, Account: of}, consentData{Account: account, UserID: user}); err != nil {
			return err
		}
	}
	s.wake(tx, account)
	return nil
}

// own makes a box take other work. All that was agreed about it ends with that, and so do
// the runs that it may not hold any more.
func (s *Service) own(tx *db.Tx, r *row, target string, owner *string) error {
	if _, err := deleteAnswers.Exec(tx, r.ID); err != nil {
		return err
	}
	_, err := setOwner.Exec(tx, setOwnerArgs{AccountID: r.AccountID, ID: r.ID, OwnerTarget: target, OwnerID: owner})
	if err != nil {
		return err
	}
	r.OwnerTarget, r.OwnerID, r.Asked = target, owner, nil
	if err := s.Runs.TakeBack(tx, r.ID); err != nil {
		return err
	}
	s.wake(tx, r.AccountID)
	return ownerSetEvent.Record(tx, event.Subject{ID: r.ID, Account: r.AccountID}, ownerData{ID: owner, Target: target})
}

type ownerIn struct {
	ID     string `json:"id" format:"uuid" doc:"id of the box"`
	Target Target `json:"target" doc:"whose work it takes: every account's, this account's, or what one member asked for here"`
	Owner  string `json:"owner_id,omitempty" format:"uuid" doc:"id of the member, for user; for org this account, and may be left out"`
}

func (s *Service) setOwner(ctx context.Context, in ownerIn) (out Box, err error) {
	if in.Target == User && in.Owner == "" {
		return Box{}, fault.Field("owner_id", "is required for the target user")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if r.State == Revoked {
			return alreadyRevoked()
		}
		owner, err := s.owner(tx, string(in.Target), in.Owner)
		if err != nil {
			return err
		}
		switch {
		case in.Target == User && r.isOf(in.Owner): // what was agreed stays
			if _, err := deleteAsks.Exec(tx, r.ID); err != nil {
				return err
			}
			r.Asked = nil
			err = ownerSetEvent.Record(tx, event.Subject{ID: r.ID}, ownerData{ID: owner, Target: string(in.Target)})
		case in.Target == User && in.Owner != policy.From(ctx).UserID:
			if _, err := deleteAsks.Exec(tx, r.ID); err != nil { // the new one takes the place of any before
				return err
			}
			ask := askArgs{BoxID: r.ID, AccountID: r.AccountID, UserID: in.Owner, AskedBy: policy.From(ctx).Label()}
			if err := answered(tx, ask, false); err != nil {
				return err
			}
			r.Asked = owner
			err = OwnerAsked.Record(tx, event.Subject{ID: r.ID}, askedData{UserID: in.Owner})
		default:
			err = s.own(tx, &r, string(in.Target), owner)
		}
		out = r.wire(tx.Now)
		return err
	})
	return out, err
}

// owner returns the id of the owner that a target means. It returns
// fault.Unprocessable if a box of tx.Account cannot have that owner.
func (s *Service) owner(tx *db.Tx, target, ownerID string) (*string, error) {
	impossible := func(detail string) error { return fault.New(fault.Unprocessable, "owner-not-possible", detail) }
	switch target {
	case Shared:
		// The work of other accounts comes with their code and tokens, so only
		// operators of the server may give it to a machine.
		if !policy.From(tx.Context()).Scopes.Has(policy.Scopes(policy.AdminReadPlat)) {
			return nil, impossible("Only a platform admin can share a box with every account.")
		}
		if ownerID != "" {
			return nil, impossible("A shared box has no owner.")
		}
		return nil, nil
	case Org:
		if ownerID != "" && ownerID != tx.Account {
			return nil, impossible("A box can be owned by the account it is enrolled under only.")
		}
		return &tx.Account, nil
	}
	member, err := people.IsMember(tx, ownerID)
	if err == nil && !member {
		err = impossible("The user is no member of this account.")
	}
	return &ownerID, err
}
