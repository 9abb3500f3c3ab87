package outbox

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

const group = "Account and platform operator"

var errSent = fault.Reason("mail-sent", "This mail is sent already.")

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.AdminReadUsers), policy.Require(policy.AdminUsers)
	return []op.Op{
		op.New(op.Row{ID: "mail.list", Method: "GET", Path: "/v1/admin/mails", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 25, Max: 100, Filters: map[string][]string{"state": {"due", "failed"}}},
			Summary: "The mails that are not sent, oldest first: to whom, since when, and why not",
			Doc: "For operators. What a mail says is not shown. A mail waits while the mail server takes none, and after a refusal for " +
				"a time that grows; after eight refusals, or one for good, it has failed. The look is written to the platform's audit log."}, s.list),
		op.New(op.Row{ID: "mail.retry", Method: "POST", Path: "/v1/admin/mails/{id}/retry", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 409, Slug: errSent.Slug}},
			Summary: "Have a mail sent now that is not sent",
			Doc: "It has all its tries again, under the same Message-ID. A mail that a server is sending at this moment stays as it is. " +
				"One that waits for an address that was refused fails again unless the refusal is cleared first."}, s.retry),
		op.New(op.Row{ID: "mail.refusals", Method: "GET", Path: "/v1/admin/mail-refusals", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The addresses that a mail server has refused for good, in the order of the alphabet",
			Doc: "For operators. Notifications are not mailed there; mails that somebody asked for, such as a code, are, and one that " +
				"arrives ends the refusal. The look is written to the platform's audit log."}, s.refusals),
		op.New(op.Row{ID: "mail.clear_refusal", Method: "POST", Path: "/v1/admin/mail-refusals/{address}/clear", Group: group, Rule: write,
			Summary: "Have notifications mailed again to an address that a mail server has refused",
			Doc:     "Mails that failed meanwhile stay failed; mail.retry sends them."}, s.clear),
	}
}

type listIn struct{ op.PageIn }

// last is the key of the last row of the page before; empty on the first.
func last(p op.PageIn) string {
	if k := p.After(); len(k) > 0 {
		return k[0]
	}
	return ""
}

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Mail], error) {
	var rows []Mail
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "mail.list"}, func(tx *db.Tx) (err error) {
		all, err := mail.Queue(tx, in.Want("state"), last(in.PageIn), in.Size())
		rows = make([]Mail, len(all))
		for i, q := range all {
			rows[i] = wire(q, tx.Now)
		}
		return err
	})
	return op.NewPage(in.PageIn, rows, func(m Mail) []string { return []string{m.ID} }), err
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the mail"`
}

func (s *Service) retry(ctx context.Context, in idIn) (out Mail, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		q, was, ok, err := s.Mail.Retry(tx, in.ID)
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.Missing("mail")
		case was == "sent":
			return errSent
		}
		out = wire(q, tx.Now)
		return retriedEvent.Operated(tx, event.Subject{ID: in.ID}, event.None{}, nil)
	})
	return out, err
}

func (s *Service) refusals(ctx context.Context, in listIn) (op.Page[Refusal], error) {
	var rows []mail.Refusal
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "mail.refusals"}, func(tx *db.Tx) (err error) {
		rows, err = mail.Refusals(tx, last(in.PageIn), in.Size())
		return err
	})
	return op.ShowPage(in.PageIn, rows, func(r mail.Refusal) []string { return []string{r.Address} }, wireRefusal), err
}

type clearIn struct {
	Address string `json:"address" maxLength:"254" example:"ada@example.com" doc:"the address"`
}

func (s *Service) clear(ctx context.Context, in clearIn) (out Refusal, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := mail.Refused(tx, in.Address)
		if err != nil {
			return err
		}
		if r == nil {
			return fault.Missing("refusal of this address")
		}
		out = wireRefusal(*r)
		if _, err := mail.Clear(tx, in.Address); err != nil {
			return err
		}
		return clearedEvent.Operated(tx, event.Subject{ID: r.Address}, event.None{}, nil)
	})
	return out, err
}
