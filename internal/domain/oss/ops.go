package oss

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

const group = "Account and platform operator"

// Ops returns the capabilities of this package: an account applies as an open-source
// project, and an operator decides.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      "account.oss_verify_list",
			Method:  "GET",
			Path:    "/v1/admin/oss-verifications",
			Group:   group,
			Rule:    policy.Require(policy.AdminReadOrgs),
			Paging:  &op.Paging{Default: 25, Max: 100, Filters: map[string][]string{"status": {Pending, "all"}}},
			Summary: "Applications as open-source projects, newest first; those that wait unless filtered",
			Doc:     "For operators. The look is written to the platform's audit log.",
		}, s.list),
		op.New(op.Row{
			ID:      "account.oss_verify_decide",
			Method:  "POST",
			Path:    "/v1/admin/oss-verifications/{id}/decide",
			Group:   group,
			Rule:    policy.Require(policy.AdminAccounts),
			Summary: "Approve or reject an application that waits",
			Doc: "Approving moves the account to the tier oss_verified, which covers private repositories, and mails " +
				"whoever applied. Rejecting needs a note for the applicant. One that does not wait is 404.",
		}, s.decide),
		op.New(op.Row{
			ID:      "account.oss_verification_get",
			Method:  "GET",
			Path:    "/v1/oss/verification",
			Group:   group,
			Rule:    policy.Require(policy.ReadBilling),
			Summary: "The account's latest application as an open-source project",
			Doc:     "application is null when the account never applied.",
		}, s.get),
		op.New(op.Row{
			ID:      "account.oss_verification_apply",
			Method:  "POST",
			Path:    "/v1/oss/verification",
			Group:   group,
			Rule:    policy.Require(policy.WriteBilling),
			Refuses: []op.Refusal{{Status: 409, Slug: "already-approved"}},
			Summary: "Apply as an open-source project, or amend the application that waits",
			Doc: "While an application waits, applying again replaces its text. After a rejection it makes a new one; once " +
				"approved it is refused.",
		}, s.apply),
	}
}

func (s *Service) get(ctx context.Context, _ op.None) (out Verification, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		a, ok, err := latest.Maybe(tx, tx.Account)
		if ok {
			out.Application = &a
		}
		return err
	})
	return out, err
}

type applyIn struct {
	ProjectURL string `json:"project_url" minLength:"1" maxLength:"500" format:"uri" example:"https://example.com/acme/web" doc:"where the project can be seen"`
	Statement  string `json:"statement" minLength:"1" maxLength:"4000" example:"Apache-2.0; a website that ships with the product." doc:"its licence, and what it is for"`
}

func (s *Service) apply(ctx context.Context, in applyIn) (out Verification, err error) {
	if u, err := url.Parse(in.ProjectURL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return out, fault.Field("project_url", "must be an https address")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if ok, err := people.LockAccount(tx, tx.Account); err != nil {
			return err
		} else if !ok {
			return fault.Missing("account")
		}
		last, ok, err := latest.Maybe(tx, tx.Account)
		if err != nil {
			return err
		}
		kind, applicationID := appliedEvent, id.New()
		switch {
		case ok && last.State == Approved:
			return fault.Reason("already-approved", "The account is verified as an open-source project already.")
		case ok && last.State == Pending:
			kind, applicationID = amendedEvent, last.ID
			_, err = amend.Exec(tx, amendArgs{
				AccountID: tx.Account, ID: last.ID, ProjectURL: in.ProjectURL, Statement: in.Statement, UpdatedAt: tx.Micros(),
			})
		default:
			var by *string
			if user := policy.From(ctx).UserID; user != "" {
				by = &user
			}
			_, err = insert.Exec(tx, insertArgs{
				ID: applicationID, AccountID: tx.Account, ProjectURL: in.ProjectURL, Statement: in.Statement, AppliedBy: by,
				CreatedAt: tx.Micros(),
			})
		}
		if err != nil {
			return err
		}
		a, err := latest.One(tx, tx.Account)
		if err != nil {
			return err
		}
		out.Application = &a
		return kind.Record(tx, event.Subject{ID: applicationID}, projectData{ProjectURL: in.ProjectURL})
	})
	return out, err
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Application], error) {
	var rows []Application
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "account.oss_verify_list"}, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	return op.NewPage(in.PageIn, rows, func(a Application) []string { return op.TimeKey(a.CreatedAt, a.ID) }), err
}

type decideIn struct {
	ID       string   `json:"id" format:"uuid" doc:"id of the application"`
	Decision Decision `json:"decision" doc:"what becomes of it"`
	Note     string   `json:"note,omitempty" maxLength:"2000" example:"Welcome!" doc:"shown to the applicant; a rejection needs one"`
	Confirm  bool     `json:"confirm" doc:"must be true"`
}

func (s *Service) decide(ctx context.Context, in decideIn) (out Application, err error) {
	in.Note = strings.TrimSpace(in.Note)
	if !in.Confirm {
		return out, fault.Field("confirm", "must be true")
	}
	approve := in.Decision == "approve"
	if !approve && in.Note == "" {
		return out, fault.Field("note", "must say why, for the applicant reads it")
	}
	if !id.Valid(in.ID) {
		return out, fault.Missing("pending application")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		state, note := Rejected, &in.Note
		if approve {
			state = Approved
		}
		if in.Note == "" {
			note = nil
		}
		// Only a pending application changes, so the second of two decisions fails.
		n, err := settle.Exec(tx, settleArgs{ID: in.ID, State: state, Note: note, UpdatedAt: tx.Micros()})
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Missing("pending application")
		}
		if out, err = byID.One(tx, in.ID); err != nil {
			return err
		}
		if approve {
			if err := people.SetTier(tx, out.AccountID, people.TierOSS); err != nil {
				return err
			}
			// Private repositories are covered now, so their tasks may run.
			s.Hub.Notify(tx, event.QueueTopic(out.AccountID), event.QueueTopic(""))
			if err := s.congratulate(tx, out); err != nil {
				return err
			}
		}
		return decidedEvent.Operated(tx, event.Subject{ID: in.ID, Account: out.AccountID}, decidedData{Decision: in.Decision, Note: note},
			map[string]any{"operator": policy.From(ctx).Label()})
	})
	return out, err
}

// congratulate mails the person who applied; a machine gets no mail.
func (s *Service) congratulate(tx *db.Tx, a Application) error {
	if a.AppliedBy == nil {
		return nil
	}
	u, err := people.ReadUser(tx, *a.AppliedBy)
	if err != nil {
		return err
	}
	login, err := people.AccountLogin(tx, a.AccountID)
	if err != nil {
		return err
	}
	p := mail.Page{
		Lead: fmt.Sprintf("Hello %s, the account %s is verified as an open-source project now: private repositories are covered, too.",
			u.Name, login),
	}
	if a.Note != nil {
		p.Lead += " The operator wrote a note."
		p.Quote = *a.Note
	}
	return s.Mail.Post(tx, p.Message(u.Email, login+" is verified as an open-source project"))
}
