package approval

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

const group = "Pull requests"

// Ops lists the capabilities of the links of mails.
func (s *Service) Ops() []op.Op {
	expired := op.Refusal{Status: 410, Slug: "action-link-expired"}
	stranger := op.Refusal{Status: 403, Slug: "not-a-member"}
	return []op.Op{
		op.New(op.Row{
			ID: "pr.action_link_confirm", Method: "GET", Path: "/actions/{jwt}", Group: group, Rule: policy.Public(), NoStore: true,
			Refuses: []op.Refusal{expired, stranger},
			Summary: "The page of a link from a mail: what it would decide",
			Doc: "Shows the question and a button, and changes nothing, so that programs which open the links of mails decide " +
				"nothing. If the question is not open any more, the page says why and has no button.",
		}, s.confirm),
		op.New(op.Row{
			ID: "pr.action_link_redeem", Method: "POST", Path: "/actions/{jwt}", Group: group,
			Rule: policy.Public(), NoStore: true, Form: true,
			Refuses: []op.Refusal{
				expired, stranger, {Status: 409, Slug: "already_redeemed"}, {Status: 409, Slug: "already_decided"},
				{Status: 409, Slug: "head_moved"}, {Status: 409, Slug: "question_changed"}, {Status: 409, Slug: "question_expired"},
				{Status: 409, Slug: "pr_not_open"}, {Status: 409, Slug: "no_pending_action"},
			},
			Summary: "Decide what a link from a mail is for, once",
			Doc: "Approves or skips the merge of the head that the link is about, in the name of the person whom it was mailed to, " +
				"who must still be one who may decide. The link is the whole credential. It works once; afterwards, and when " +
				"the question was decided elsewhere or the head has moved, it is refused and says which.",
		}, s.redeem),
	}
}

type confirmIn struct {
	JWT string `json:"jwt"`
}

type redeemIn struct {
	JWT    string `json:"jwt"`
	Accept string `header:"Accept"`
}

// read verifies a token, and reads its link and the question. It fails with
// errMalformed, errExpired and errNotYours.
func (s *Service) read(tx *db.Tx, token seal.Link) (l linkRow, q Question, err error) {
	if !tx.Now.Before(token.Expires) {
		return l, q, errExpired
	}
	if !id.Valid(token.Subject) {
		return l, q, errMalformed
	}
	l, ok, err := linkByID.Maybe(tx, tx.Account, token.Subject)
	if err != nil {
		return l, q, err
	}
	if !ok { // say the database was restored
		return l, q, errExpired
	}
	if _, ok, err = people.RoleSince(tx, tx.Account, l.UserID, l.CreatedAt); err != nil {
		return l, q, err
	}
	if ok { // who was removed and added again has links of their own
		_, ok, err = mayDecide(tx, l.UserID)
	}
	if err == nil && !ok {
		err = errNotYours
	}
	if err != nil {
		return l, q, err
	}
	q, ok, err = s.Questions.ByID(tx, l.ActionID)
	if err == nil && !ok {
		err = errExpired
	}
	return l, q, err
}

// open verifies a token and answers a context of its account.
func (s *Service) open(ctx context.Context, token string) (context.Context, seal.Link, error) {
	l, err := s.Ring.ReadLink(linkPurpose, token)
	if err != nil {
		return ctx, l, errMalformed.Because(err)
	}
	return db.WithAccount(ctx, l.Account), l, nil
}

func (s *Service) confirm(ctx context.Context, in confirmIn) (op.Reply, error) {
	ctx, token, err := s.open(ctx, in.JWT)
	if err != nil {
		return op.Reply{}, err
	}
	var v view
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		l, q, err := s.read(tx, token)
		if err != nil {
			return err
		}
		v, err = viewOf(tx, l, q)
		if l.RedeemedAt != nil {
			v.Refused = errRedeemed.Detail
		} else if useless := l.useless(q); useless != nil {
			v.Refused = fault.From(useless).Detail
		}
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	return render(ctx, v)
}

// Redeemed is the answer of pr.action_link_redeem to a program.
type Redeemed struct {
	_       struct{} `doc:"What a link from a mail has decided." schema:"Redeemed"`
	Verb    Verb     `json:"verb" doc:"what was decided"`
	PRID    string   `json:"pr_id" format:"uuid" doc:"the pull request"`
	HeadSHA string   `json:"head_sha" doc:"the head that was decided about"`
}

func (s *Service) redeem(ctx context.Context, in redeemIn) (op.Reply, error) {
	ctx, token, err := s.open(ctx, in.JWT)
	if err != nil {
		return op.Reply{}, err
	}
	var l linkRow
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		l, _, err = s.read(tx, token)
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	// The person is the actor. What they may do is read again in the transaction.
	actor := policy.Actor{
		Credential: policy.ActionLink, CredentialID: l.ID, UserID: l.UserID, AccountID: l.AccountID, ExpiresAt: token.Expires,
		Scopes: policy.Scopes(policy.WritePRs), RequestID: op.RequestOf(ctx).ID,
	}
	var v view
	var out Redeemed
	err = s.DB.Write(policy.With(ctx, actor), func(tx *db.Tx) error {
		if _, _, err := lockLink.Maybe(tx, tx.Account, token.Subject); err != nil {
			return err
		}
		l, q, err := s.read(tx, token)
		if err != nil {
			return err
		}
		if l.RedeemedAt != nil {
			return errRedeemed
		}
		if err := l.useless(q); err != nil {
			return err
		}
		if _, err := redeemLink.Exec(tx, l.ID, tx.Now); err != nil {
			return err
		}
		if err := s.Questions.Decide(tx, q, l.Verb == Approve); err != nil {
			return err
		}
		out = Redeemed{Verb: Verb(l.Verb), PRID: q.PRID, HeadSHA: q.HeadSHA}
		v, err = viewOf(tx, l, q)
		v.Done = true
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	if !op.PrefersPage(in.Accept) {
		return op.Reply{Status: 200, ContentType: "application/json", Body: out}, nil
	}
	return render(ctx, v)
}
