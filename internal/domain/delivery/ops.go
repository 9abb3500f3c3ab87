package delivery

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const group = "Code hosts"

// Ops lists the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.Raw(op.Row{
			ID: "inbound.github", Method: "POST", Path: "/v1/inbound/github", Group: group, Rule: policy.Public(), MaxBody: maxBody,
			Refuses: []op.Refusal{{Status: 401, Slug: "bad-signature"}},
			Takes:   Payload{}, Body: Receipt{},
			Summary: "GitHub delivers an event of the App",
			Doc: "Signed with the App's webhook secret (X-Hub-Signature-256). The delivery is stored before it is answered and applied " +
				"afterwards; a delivery whose X-GitHub-Delivery was received before changes nothing.",
		}, s.receive),
		op.New(op.Row{
			ID: "code_host.deliveries", Method: "GET", Path: "/v1/admin/deliveries", Group: group,
			Rule:    policy.Require(policy.AdminReadPlat),
			Paging:  &op.Paging{Default: 50, Max: 200, Filters: map[string][]string{"state": {Stored, Applied, Ignored, Failed}}},
			Summary: "What code hosts have sent, newest first, for as long as it is kept: 30 days unless the operator says otherwise",
			Doc:     "A delivery that is stored is yet to be applied; error says why the last try failed.",
		}, s.list),
		op.New(op.Row{
			ID: "code_host.replay", Method: "POST", Path: "/v1/admin/deliveries/{guid}/replay", Group: group,
			Rule:    policy.Require(policy.AdminAccounts),
			Summary: "Apply a delivery once more",
			Doc:     "From the copy that is stored here. Applying a delivery twice does no harm.",
		}, s.replay),
	}
}

// Payload is the body of a delivery, as far as every event has it.
type Payload struct {
	_      struct{} `doc:"The body of a delivery: an object whose members depend on the event." schema:"GitHubPayload"`
	Action string   `json:"action,omitempty" example:"opened" doc:"what has happened; events without actions leave it out"`
}

// Shown is a delivery as operators see it.
type Shown struct {
	_          struct{}   `doc:"A delivery of a code host." schema:"CodeHostDelivery"`
	GUID       string     `json:"guid" db:"guid" example:"72d3162e-cc78-11e3-81ab-4c9367dc0958" doc:"the id that the host gave it, the same each time it is sent"`
	Host       string     `json:"host" example:"github:github.com" doc:"the code host"`
	Kind       string     `json:"kind" example:"pull_request" doc:"the host's name of the event"`
	Bytes      int64      `json:"bytes" doc:"length of its body"`
	State      State      `json:"state" doc:"stored: yet to be applied; ignored: it means nothing here; failed: it was given up"`
	Reason     *string    `json:"reason" db:"-" enum:"event_ignored" example:"null" doc:"why it was ignored: event_ignored, it is of a kind that is not read or tells nothing about a repository here; null unless it was"`
	Tries      int64      `json:"tries" doc:"how often it was tried"`
	Error      *string    `json:"error" example:"null" doc:"why the last try failed; null if none did"`
	ReceivedAt time.Time  `json:"received_at" doc:"when it was received first"`
	EndedAt    *time.Time `json:"ended_at" doc:"when it was applied or given up; null until then"`
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (page op.Page[Shown], err error) {
	var rows []Shown
	err = event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "code_host.deliveries"}, func(tx *db.Tx) (err error) {
		if rows, err = list(tx, in.PageIn); err != nil {
			return err
		}
		return s.withTries(tx, rows)
	})
	if err != nil {
		return page, err
	}
	for i := range rows {
		if rows[i].State == Ignored {
			rows[i].Reason = new(eventIgnored)
		}
	}
	return op.NewPage(in.PageIn, rows, func(r Shown) []string { return op.TimeKey(r.ReceivedAt, r.GUID) }), nil
}

// withTries gives those that are yet to be applied the tries of the queue.
func (s *Service) withTries(tx *db.Tx, rows []Shown) error {
	var keys []string
	for _, r := range rows {
		if r.State == Stored {
			keys = append(keys, key(r.Host, r.GUID))
		}
	}
	at, err := s.queue.States(tx, keys)
	for i, r := range rows {
		if now, ok := at[key(r.Host, r.GUID)]; ok && r.State == Stored {
			rows[i].Tries = now.Tries
		}
	}
	return err
}

type replayIn struct {
	GUID string `json:"guid" minLength:"1" maxLength:"100" doc:"id of the delivery"`
}

// Replayed is the answer of code_host.replay.
type Replayed struct {
	_        struct{} `doc:"What code_host.replay did." schema:"DeliveryReplayed"`
	Replayed bool     `json:"replayed" doc:"false: it is to be applied anyway"`
}

func (s *Service) replay(ctx context.Context, in replayIn) (out Replayed, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		d, ok, err := byGUID.Maybe(tx, in.GUID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("delivery")
		}
		n, err := replay.Exec(tx, d.Host, d.GUID)
		out.Replayed = n > 0
		if err != nil || n == 0 {
			return err
		}
		s.queue.Add(tx, key(d.Host, d.GUID), due.Entry{})
		return replayedEvent.Operated(tx, event.Subject{ID: d.GUID}, replayedData{Host: d.Host, Kind: d.Kind}, nil)
	})
	return out, err
}
