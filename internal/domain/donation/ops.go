package donation

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/money"
	"yardmaster/internal/policy"
)

const group = "Billing keys, donations, grants, onboarding, MCP"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadDonations), policy.Require(policy.WriteDonations)
	paging := &op.Paging{Default: 25, Max: 100}
	return []op.Op{
		op.New(op.Row{
			ID: "donation.list", Method: "GET", Path: "/v1/donations", Group: group, Rule: read, Paging: paging,
			Summary: "What the account gave to open-source repositories, newest first",
			Doc:     "With what was used of each gift. One that is parked stays as history.",
		}, s.list),
		op.New(op.Row{
			ID: "donation.received", Method: "GET", Path: "/v1/donations/received", Group: group, Rule: read, Paging: paging,
			Summary: "Gifts that are pinned to repositories of the account, newest first",
			Doc:     "Whoever gave one is named by the login of their account. model_options are the models that the server knows.",
		}, s.received),
		op.New(op.Row{
			ID: "donation.create", Method: "POST", Path: "/v1/donations", Group: group, Rule: write, Status: 201,
			Refuses: []op.Refusal{
				{Status: 402, Slug: "payment-required"}, {Status: 403, Slug: "reauth-required"}, {Status: 404, Slug: "not-found"},
				{Status: 409, Slug: SlugGiven}, {Status: 422, Slug: "not-lendable"},
			},
			Summary: "Give a key (llm), money that calls over a key cost, or a box (compute), to one repository or to the pool",
			Doc: "A key or a box that is given serves nothing else until the gift ends, no private repository and not this account. " +
				"Money is paid by the key's own provider bill, up to usd, and counts for this account's budgets. Takes write:billing " +
				"for a key; for a box write:runners, and a session that signed in within the last hour. llm and compute take an oss_donor subscription. The repository must take gifts.",
		}, s.create),
		op.New(op.Row{
			ID: "donation.cancel", Method: "DELETE", Path: "/v1/donations/{id}", Group: group, Rule: write,
			Summary: "Take a gift back; again is no error",
			Doc:     "No further call or run begins over it. A call under way ends; a run on the box goes back into its queue.",
		}, s.cancel),
		op.New(op.Row{
			ID: "donation.decline", Method: "POST", Path: "/v1/donations/{id}/decline", Group: group, Rule: write,
			Summary: "Refuse a gift to a repository of the account; again is no error",
			Doc:     "It ends as if it was taken back. A gift of the account's own, or to the pool, is a 404 here.",
		}, s.decline),
		op.New(op.Row{
			ID: "donation.set_model", Method: "PATCH", Path: "/v1/donations/{id}/model", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 409, Slug: "not-llm"}, {Status: 409, Slug: "donation-parked"}},
			Summary: "Pick the model of calls over a received gift, out of its ceiling; null clears",
			Doc:     "It goes before what a template names, from the next call on.",
		}, s.setModel),
	}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Donation], error) {
	rows, err := s.page(ctx, in.PageIn, false)
	if err != nil {
		return op.Page[Donation]{}, err
	}
	return op.ShowPage(in.PageIn, rows, row.key, row.wire), nil
}

func (s *Service) page(ctx context.Context, p op.PageIn, theirs bool) (rows []row, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, p, theirs)
		return err
	})
	return rows, err
}

// ReceivedPage is the answer of donation.received.
type ReceivedPage struct {
	_ struct{} `doc:"A page of gifts that the account received." schema:"ReceivedDonationPage"`
	op.Page[ReceivedDonation]
	ModelOptions []Model `json:"model_options" doc:"the models that the server knows, whatever the ceilings are"`
}

func (s *Service) received(ctx context.Context, in listIn) (ReceivedPage, error) {
	rows, err := s.page(ctx, in.PageIn, true)
	if err != nil {
		return ReceivedPage{}, err
	}
	return ReceivedPage{Page: op.ShowPage(in.PageIn, rows, row.key, s.shown), ModelOptions: s.catalogue()}, nil
}

type createIn struct {
	Kind   Kind     `json:"kind" doc:"what is given"`
	Target Target   `json:"target" doc:"one repository, or every one that takes gifts"`
	Repo   string   `json:"repo,omitempty" pattern:"^[^/\\s]+/[^/\\s]+$" says:"must have the form OWNER/NAME" maxLength:"200" doc:"owner/name, for the target project"`
	KeyID  string   `json:"key_id,omitempty" format:"uuid" doc:"key of the account's pool that is lent (llm) or pays (money)"`
	BoxID  string   `json:"box_id,omitempty" format:"uuid" doc:"box that is lent (compute)"`
	USD    *float64 `json:"usd,omitempty" minimum:"0.01" maximum:"1000000" example:"20" doc:"US dollars that calls may cost together (money)"`
	Models []Model  `json:"models,omitempty" maxItems:"50" doc:"no other models are asked for, compared to the letter; left out: any of the key's provider"`
}

func (s *Service) create(ctx context.Context, in createIn) (out Donation, err error) {
	a := policy.From(ctx)
	if err := in.check(); err != nil {
		return out, err
	}
	if err := may(a, in.Kind); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if in.Kind == Compute { // strangers' programs will run on it
			if err := a.Present(tx.Now); err != nil {
				return err
			}
		}
		args := insertArgs{
			ID: id.New(), AccountID: tx.Account, Kind: in.Kind, Micros: money.Micros(in.USD), GivenBy: a.Label(), CreatedAt: tx.Now,
		}
		if err := s.resource(tx, in, &args); err != nil {
			return err
		}
		if err := s.aim(tx, in, &args); err != nil {
			return err
		}
		if in.Kind != Money {
			if ok, err := s.Donors.Donor(tx, tx.Account); err != nil || !ok {
				return cmpErr(err, fault.New(fault.PaymentRequired, "", "A key or a box is given by accounts with an active oss_donor "+
					"subscription. An owner subscribes (billing.checkout), or an operator of the server grants one (grant.issue)."))
			}
		}
		if _, err := insert.Exec(tx, args); err != nil {
			return err
		}
		r, err := given.One(tx, tx.Account, args.ID)
		if err != nil {
			return err
		}
		if err := s.moved(tx, &r); err != nil {
			return err
		}
		out = r.wire()
		return record(tx, givenEvent, &r, about(&r), "given")
	})
	if db.IsUnique(err) {
		err = fault.Reason(SlugGiven, "It is given already. Take that gift back first: `yardmaster donation cancel`.")
	}
	return out, err
}

func cmpErr(err error, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// resource puts into a gift what it is made of.
func (s *Service) resource(tx *db.Tx, in createIn, args *insertArgs) error {
	if in.Kind == Compute {
		if !id.Valid(in.BoxID) {
			return fault.Missing("box")
		}
		why, ok, err := s.Boxes.Lendable(tx, in.BoxID)
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.Missing("box")
		case why != "":
			return fault.New(fault.Unprocessable, "not-lendable", why)
		}
		args.BoxID = &in.BoxID
		return nil
	}
	provider, err := s.key(tx, in)
	if err != nil {
		return err
	}
	args.KeyID, args.Provider = &in.KeyID, string(provider)
	args.Models, err = ceiling(in.Models, provider)
	return err
}

// aim puts the target into a gift.
func (s *Service) aim(tx *db.Tx, in createIn, args *insertArgs) error {
	if in.Target == Pool {
		return nil
	}
	owner, name := split(in.Repo)
	r, ok, err := target.Maybe(tx, owner, name)
	switch {
	case err != nil:
		return err
	case !ok:
		return fault.Missing("repository that takes gifts")
	case r.AccountID == tx.Account:
		return fault.Field("repo", "belongs to this account, which uses its keys and boxes anyway")
	}
	args.RepoID = &r.ID
	return nil
}

// moved tells those that wait that a gift has begun or ended.
func (s *Service) moved(tx *db.Tx, r *row) error {
	if r.Kind == Compute {
		if err := s.Boxes.Moved(tx, *r.BoxID, r.TargetAccount); err != nil {
			return err
		}
	}
	s.Hub.Notify(tx, event.QueueTopic(r.AccountID), event.QueueTopic(r.TargetAccount), event.QueueTopic(""))
	return nil
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the gift"`
}

// EndedDonation is the answer of donation.cancel and donation.decline.
type EndedDonation struct {
	_      struct{} `doc:"What ended a gift." schema:"EndedDonation"`
	ID     string   `json:"id" format:"uuid" doc:"id of the gift"`
	Parked bool     `json:"parked" doc:"false: it was over before"`
	State  State    `json:"state" example:"parked" doc:"parked"`
}

func (s *Service) cancel(ctx context.Context, in idIn) (EndedDonation, error) {
	return s.stop(ctx, given, in.ID, Cancelled)
}

func (s *Service) decline(ctx context.Context, in idIn) (EndedDonation, error) {
	return s.stop(ctx, receivedByID, in.ID, Declined)
}

// stop ends a gift that the statement finds for the caller.
func (s *Service) stop(ctx context.Context, by db.Query[row], donationID, why string) (out EndedDonation, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, by, donationID)
		if err != nil {
			return err
		}
		if why == Cancelled {
			if err := may(policy.From(ctx), r.Kind); err != nil {
				return err
			}
		}
		parked, err := end(tx, &r, why)
		out = EndedDonation{ID: r.ID, Parked: parked, State: Parked}
		if err != nil || !parked {
			return err
		}
		return s.moved(tx, &r)
	})
	return out, err
}

type modelIn struct {
	ID    string `json:"id" format:"uuid" doc:"id of the gift"`
	Model *Model `json:"model" required:"true" doc:"one of the ceiling; null: as the template says"`
}

func (s *Service) setModel(ctx context.Context, in modelIn) (out ReceivedDonation, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, receivedByID, in.ID)
		if err != nil {
			return err
		}
		switch {
		case r.Kind != LLM:
			return fault.Reason("not-llm", "A model is picked for a gift of the kind llm.")
		case r.ParkedAt != nil:
			return fault.Reason("donation-parked", "The gift is over.")
		case in.Model != nil && !s.within(&r, *in.Model):
			return fault.Field("model", "is not in the ceiling of the gift, which is compared to the letter")
		}
		var name *string
		if in.Model != nil {
			name = &in.Model.Model
		}
		if !sameName(name, r.Model) {
			if _, err := setModel.Exec(tx, r.ID, name); err != nil {
				return err
			}
			r.Model = name
			if err := record(tx, modelEvent, &r, modelData{about(&r), name}, "model_set"); err != nil {
				return err
			}
			s.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic(""))
		}
		out = s.shown(r)
		return nil
	})
	return out, err
}

func sameName(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// within tells whether a model is one of those that a gift may be asked for.
func (s *Service) within(r *row, m Model) bool {
	for _, one := range s.resolved(r) {
		if one.Provider == m.Provider && one.Model == m.Model {
			return true
		}
	}
	return false
}
