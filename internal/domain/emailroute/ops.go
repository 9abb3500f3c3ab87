package emailroute

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

const group = "Knowledge base, dashboards, digests, notifications"

var (
	errExists = fault.Reason("email-route-exists", "There is a route to this address. Delete it first.")
	errMany   = fault.Reason("too-many-email-routes", "The account has 20 routes. Delete one first.")
	errAsked  = fault.Reason("too-many-confirmations", "The account has had 40 mails sent in a day that ask for a confirmation. Try again tomorrow.")
	errOften  = fault.Reason(errAsked.Slug, "This address was asked as often as it may be in a day. Try again tomorrow.")
	errSure   = fault.Reason("email-route-confirmed", "This address is confirmed already.")
)

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadAccount), policy.Require(policy.WriteAccount)
	asked := op.Refusal{Status: 409, Slug: errAsked.Slug}
	return append([]op.Op{
		op.New(op.Row{ID: "email_route.list", Method: "GET", Path: "/v1/email-routes", Group: group, Rule: read,
			Paging:  paging,
			Summary: "The addresses of teams that get notices of the account, newest first",
			Doc:     "One that nobody has confirmed gets nothing."}, s.list),
		op.New(op.Row{ID: "email_route.create", Method: "POST", Path: "/v1/email-routes", Group: group, Rule: write, Status: 201,
			Refuses: []op.Refusal{{Status: 409, Slug: errExists.Slug}, {Status: 409, Slug: errMany.Slug}, asked},
			Summary: "Have notices of some kinds sent to an address, once somebody there has confirmed it",
			Doc: "A mail with a link asks for the confirmation within 48 hours; nothing else is sent before. From then on the address " +
				"gets each notice of these kinds once, whoever it concerns, without links that act. Each mail has a link that ends its kind."},
			s.create),
		op.New(op.Row{ID: "email_route.resend", Method: "POST", Path: "/v1/email-routes/{id}/resend", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 409, Slug: errSure.Slug}, asked},
			Summary: "Mail the question again to an address that nobody has confirmed",
			Doc:     "With a new link for 48 hours. The link before it works as well until it expires."}, s.resend),
		op.New(op.Row{ID: "email_route.delete", Method: "DELETE", Path: "/v1/email-routes/{id}", Group: group, Rule: write,
			Summary: "Send no more notices to an address",
			Doc:     "The address is forgotten, and its links work no more."}, s.delete),
	}, s.linkOps()...)
}

// Route is a route as the API shows it.
type Route struct {
	_           struct{}   `doc:"An address of a team that gets notices of the account." schema:"EmailRoute"`
	ID          string     `json:"id" format:"uuid" doc:"id of the route"`
	Address     string     `json:"address" format:"email" doc:"where notices are sent, in lower case"`
	Kinds       []string   `json:"kinds" example:"[\"escalation\",\"task_failed\"]" doc:"the kinds of notices that are sent there"`
	CreatedBy   string     `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who made it"`
	CreatedAt   time.Time  `json:"created_at" doc:"when it was made"`
	AskedAt     time.Time  `json:"asked_at" doc:"when the address was last asked"`
	ConfirmedAt *time.Time `json:"confirmed_at" example:"null" doc:"when somebody there has confirmed it; null: nothing is sent"`
	RefusedAt   *time.Time `json:"email_refused_at" example:"null" doc:"since when nothing is sent, because a mail server has refused the address for good; null: none has"`
}

func (r row) wire(tx *db.Tx) (Route, error) {
	out := Route{ID: r.ID, Address: r.Address, Kinds: r.Kinds.V, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, AskedAt: r.AskedAt,
		ConfirmedAt: r.ConfirmedAt}
	refused, err := mail.Refused(tx, r.Address)
	if refused != nil {
		out.RefusedAt = &refused.At
	}
	return out, err
}

type listIn struct{ op.PageIn }

var paging = &op.Paging{Default: 25, Max: 100}

func (s *Service) list(ctx context.Context, in listIn) (out op.Page[Route], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := living.All(tx, tx.Account)
		if err != nil {
			return err
		}
		all := make([]Route, len(rows))
		for i, r := range rows {
			if all[i], err = r.wire(tx); err != nil {
				return err
			}
		}
		out = op.Cut(in.PageIn, all, func(r Route) []string { return op.NewestKey(r.CreatedAt, r.ID) })
		return nil
	})
	return out, err
}

type createIn struct {
	Address string   `json:"address" maxLength:"254" pattern:"^[^@\\s<>,;]+@[^@\\s<>,;]+$" says:"must be an e-mail address" format:"email" doc:"where notices are to be sent"`
	Kinds   []string `json:"kinds" minItems:"1" maxItems:"20" example:"[\"escalation\"]" doc:"kinds of notices, as notification.prefs_list names them; all but digest"`
}

func (s *Service) create(ctx context.Context, in createIn) (out Route, err error) {
	for _, name := range in.Kinds {
		if _, ok := s.kind(name); !ok {
			names := make([]string, len(s.Kinds))
			for i, k := range s.Kinds {
				names[i] = k.Name
			}
			return out, fault.Field("kinds", "has a kind that cannot be sent to a team, "+name+": the kinds are "+strings.Join(names, ", "))
		}
	}
	in.Address = strings.ToLower(in.Address)
	kinds := slices.Clone(in.Kinds)
	slices.Sort(kinds)
	kinds = slices.Compact(kinds)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := people.LockAccount(tx, tx.Account); err != nil {
			return err
		}
		if _, err := forget.Exec(tx, tx.Account, db.Micros(tx.Now.Add(-forgetIn))); err != nil {
			return err
		}
		all, err := living.All(tx, tx.Account)
		if err != nil {
			return err
		}
		if len(all) >= maxRoutes {
			return errMany
		}
		if err := room(tx, in.Address); err != nil {
			return err
		}
		r := row{
			ID: id.New(), AccountID: tx.Account, Address: in.Address, Digest: digest(in.Address), Mailbox: digest(mailbox(in.Address)),
			Kinds:     db.JSON[[]string]{V: kinds},
			CreatedBy: policy.From(ctx).Label(), CreatedAt: tx.Now, Asked: 1, AskedAt: tx.Now,
		}
		if slices.ContainsFunc(all, func(other row) bool { return other.Address == r.Address }) {
			return errExists
		}
		if _, err := insert.Exec(tx, r); err != nil {
			return err
		}
		if err := s.asks(tx, r); err != nil {
			return err
		}
		if out, err = r.wire(tx); err != nil {
			return err
		}
		return createdEvent.Record(tx, event.Subject{ID: r.ID}, routeData{Address: r.Address, Kinds: kinds})
	})
	if db.IsUnique(err) {
		err = errExists
	}
	return out, err
}

// digest is the hash of an address.
func digest(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:])
}

// mailbox is an address without its tag: providers deliver all of user+tag@host to
// user@host, and whoever floods a mailbox has as many addresses of it as they like.
func mailbox(address string) string {
	user, host, _ := strings.Cut(address, "@")
	user, _, _ = strings.Cut(user, "+")
	return user + "@" + host
}

// room refuses one more question of tx.Account if it had maxAsked, or the address or its
// mailbox had as many as it may have.
func room(tx *db.Tx, address string) error {
	since := db.Micros(tx.Now.Add(-askedIn))
	if n, err := askedSince.One(tx, tx.Account, since); err != nil {
		return err
	} else if n >= maxAsked {
		return errAsked
	}
	if n, err := askedThere.One(tx, digest(address), since, tx.Account); err != nil {
		return err
	} else if n >= maxThere {
		return errOften
	}
	n, err := askedAnywhere.One(tx, digest(mailbox(address)), since)
	if err == nil && n >= maxAnyone {
		err = errOften
	}
	return err
}

// asks mails the question in the name of the caller.
func (s *Service) asks(tx *db.Tx, r row) error {
	by := "Somebody"
	if userID := policy.From(tx.Context()).UserID; userID != "" {
		login, _, ok, err := people.Names(tx, userID, tx.Account)
		if err != nil {
			return err
		}
		if ok {
			by = login
		}
	}
	return s.ask(tx, r, by)
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the route"`
}

// find reads a route of tx.Account that was not deleted.
func find(tx *db.Tx, routeID string) (row, error) {
	r, ok, err := byID.Maybe(tx, tx.Account, routeID)
	if err == nil && !ok {
		err = fault.Missing("route")
	}
	return r, err
}

func (s *Service) resend(ctx context.Context, in idIn) (out Route, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := people.LockAccount(tx, tx.Account); err != nil {
			return err
		}
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		if r.ConfirmedAt != nil {
			return errSure
		}
		if err := room(tx, r.Address); err != nil {
			return err
		}
		if _, err := askAgain.Exec(tx, askAgainArgs{
			AccountID: tx.Account, ID: r.ID, Now: tx.Micros(), Since: db.Micros(tx.Now.Add(-askedIn)),
		}); err != nil {
			return err
		}
		r.AskedAt = tx.Now
		if err := s.asks(tx, r); err != nil {
			return err
		}
		if out, err = r.wire(tx); err != nil {
			return err
		}
		return resentEvent.Record(tx, event.Subject{ID: r.ID}, routeData{Address: r.Address, Kinds: r.Kinds.V})
	})
	return out, err
}

// Deleted is the answer of email_route.delete.
type Deleted struct {
	_  struct{} `doc:"What email_route.delete did." schema:"DeletedEmailRoute"`
	ID string   `json:"id" format:"uuid" doc:"id of the route"`
}

func (s *Service) delete(ctx context.Context, in idIn) (out Deleted, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := people.LockAccount(tx, tx.Account); err != nil {
			return err
		}
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		out = Deleted{ID: r.ID}
		return r.end(tx)
	})
	return out, err
}

// end ends a route of tx.Account.
func (r row) end(tx *db.Tx) error {
	if _, err := erase.Exec(tx, tx.Account, r.ID, tx.Micros()); err != nil {
		return err
	}
	return deletedEvent.Record(tx, event.Subject{ID: r.ID}, routeData{Address: r.Address, Kinds: r.Kinds.V})
}

// RightsChanged ends the routes that a user has made, might not make any more, and that nobody has
// confirmed: whoever has left must not have notices of the account sent to an address by a link that
// waits there. It is a subscriber of event.RightsChanged.
func RightsChanged(tx *db.Tx, userID string) error {
	rows, err := unsure.All(tx, policy.Actor{UserID: userID}.Label())
	if err != nil {
		return err
	}
	accounts := make([]string, len(rows))
	for i, r := range rows {
		accounts[i] = r.AccountID
	}
	may := func(_ int, now policy.Role) bool { return now.Ceiling().Has(policy.Scopes(policy.WriteAccount)) }
	return people.Ends(tx, userID, accounts, may, func(i int) error { return rows[i].end(tx) })
}
