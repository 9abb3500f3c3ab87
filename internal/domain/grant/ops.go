package grant

import (
	"context"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

const listID = "grant.list"

var paging = &op.Paging{Default: 25, Max: 100}

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      listID,
			Method:  "GET",
			Path:    "/v1/admin/grants",
			Group:   group,
			Rule:    policy.Require(policy.AdminReadOrgs),
			Paging:  paging,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "What an account or a person was given, newest first, revoked and expired grants included",
			Doc:     "Send account_id or user_id. The look is written to the platform's audit log.",
		}, s.list),
		op.New(op.Row{
			ID:      "grant.issue",
			Method:  "POST",
			Path:    "/v1/admin/grants",
			Group:   group,
			Rule:    policy.Require(policy.AdminGrants),
			Status:  201,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "Give an account or a person free AI developers",
			Doc: "Send account_id or user_id. The AI developers count on top of the paid seats, at once; a person's count " +
				"in the first account that they own. The reason is kept.",
		}, s.issue),
		op.New(op.Row{
			ID:      "grant.revoke",
			Method:  "DELETE",
			Path:    "/v1/admin/grants/{id}",
			Group:   group,
			Rule:    policy.Require(policy.AdminGrants),
			Summary: "Stop a grant; its row is kept, and again is no error",
			Doc:     "Runs that go on are not stopped; fewer can begin.",
		}, s.revoke),
		s.provisionOp(),
	}
}

type listIn struct {
	op.PageIn
	AccountID string `json:"account_id,omitempty" format:"uuid" doc:"whose grants; this or user_id"`
	UserID    string `json:"user_id,omitempty" format:"uuid" doc:"whose grants; this or account_id"`
}

func (s *Service) list(ctx context.Context, in listIn) (op.Page[EntitlementGrant], error) {
	subject := Subject{in.AccountID, in.UserID}
	if err := subject.check(); err != nil {
		return op.Page[EntitlementGrant]{}, err
	}
	var rows []EntitlementGrant
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{
		Capability: "grant.list",
		Account:    in.AccountID,
		User:       in.UserID,
	}, func(tx *db.Tx) (err error) {
		if err = s.exists(tx, subject); err != nil {
			return err
		}
		rows, err = list(tx, subject, in.PageIn)
		return err
	})
	return op.NewPage(in.PageIn, rows, key), err
}

// exists returns fault.NotFound unless the subject exists.
func (s *Service) exists(tx *db.Tx, subject Subject) error {
	what, who, find := "account", subject.AccountID, people.HasAccount
	if who == "" {
		what, who, find = "user", subject.UserID, people.HasUser
	}
	ok := id.Valid(who)
	if ok {
		var err error
		if ok, err = find(tx, who); err != nil {
			return err
		}
	}
	if !ok {
		return fault.Missing(what)
	}
	return nil
}

type issueIn struct {
	AccountID     string `json:"account_id,omitempty" format:"uuid" doc:"to whom; this or user_id"`
	UserID        string `json:"user_id,omitempty" format:"uuid" doc:"to whom; this or account_id"`
	AIDevs        int64  `json:"ai_devs" minimum:"1" maximum:"1000" example:"1" doc:"AI developers on top of the paid seats"`
	Reason        string `json:"reason" minLength:"1" maxLength:"500" example:"Early tester" doc:"why; kept with the grant"`
	ExpiresInDays *int   `json:"expires_in_days" minimum:"1" maximum:"3650" doc:"left out: until it is revoked"`
}

func (s *Service) issue(ctx context.Context, in issueIn) (out EntitlementGrant, err error) {
	subject := Subject{in.AccountID, in.UserID}
	if err := subject.check(); err != nil {
		return out, err
	}
	if strings.TrimSpace(in.Reason) == "" {
		return out, fault.Field("reason", "must say why")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := s.exists(tx, subject); err != nil {
			return err
		}
		var account string
		g := EntitlementGrant{AIDevs: in.AIDevs, Reason: in.Reason, ExpiresAt: until(tx.Now, in.ExpiresInDays)}
		out, account, err = s.ledger.book(tx, subject, g)
		if err != nil {
			return err
		}
		return issuedEvent.Operated(tx, event.Subject{ID: out.ID, Account: account},
			issuedData{UserID: out.UserID, AIDevs: out.AIDevs, ExpiresAt: out.ExpiresAt}, map[string]any{"reason": out.Reason})
	})
	return out, err
}

func until(now time.Time, days *int) *time.Time {
	if days == nil {
		return nil
	}
	t := now.AddDate(0, 0, *days)
	return &t
}

type revokeIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the grant"`
}

// RevokedGrant is the answer of grant.revoke.
type RevokedGrant struct {
	_       struct{}         `doc:"What grant.revoke did." schema:"RevokedGrant"`
	ID      string           `json:"id" format:"uuid" doc:"id of the grant"`
	Revoked bool             `json:"revoked" doc:"false: it had stopped before"`
	Grant   EntitlementGrant `json:"grant" doc:"as it stands now"`
}

func (s *Service) revoke(ctx context.Context, in revokeIn) (out RevokedGrant, err error) {
	if !id.Valid(in.ID) {
		return out, fault.Missing("grant")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := revokeGrant.Exec(tx, in.ID, tx.Micros(), policy.From(ctx).Label())
		if err != nil {
			return err
		}
		g, ok, err := byID.Maybe(tx, tx.Micros(), in.ID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("grant")
		}
		out = RevokedGrant{ID: in.ID, Revoked: n == 1, Grant: g}
		if n == 0 {
			return nil
		}
		var of Subject
		if g.AccountID != nil {
			of.AccountID = *g.AccountID
		} else {
			of.UserID = *g.UserID
		}
		account, err := s.ledger.changed(tx, of)
		if err != nil {
			return err
		}
		return revokedEvent.Operated(tx, event.Subject{ID: in.ID, Account: account}, revokedData{UserID: g.UserID, AIDevs: g.AIDevs}, nil)
	})
	return out, err
}
