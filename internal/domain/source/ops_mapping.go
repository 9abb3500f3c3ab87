package source

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/inbound"
	"yardmaster/internal/policy"
)

// mappingOps are the capabilities about how deliveries of the kind generic are read.
func (s *Service) mappingOps() []op.Op {
	write := policy.Require(policy.WriteWebhooks)
	return []op.Op{
		op.New(op.Row{ID: "integration.mapping_preview", Method: "POST", Path: "/v1/integrations/{id}/mapping/preview", Group: group,
			Rule:    write,
			Refuses: []op.Refusal{{Status: 409, Slug: "not-generic"}},
			Summary: "What a mapping makes of the last ten deliveries of a source, without saving it",
			Doc: "Of a source of the kind generic. Each delivery is read with the mapping and judged as it would be now, apart from whether " +
				"there is an ask for it. Nothing is filed."}, s.previewMapping),
		op.New(op.Row{ID: "integration.mapping_set", Method: "PUT", Path: "/v1/integrations/{id}/mapping", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 403, Slug: "missing-scope"}, {Status: 409, Slug: "not-generic"}},
			Summary: "Set how the deliveries of a source are read",
			Doc: "Of a source of the kind generic; integration.mapping_preview shows what it would make of the last deliveries. The mapping " +
				"replaces the one before it, and holds for what comes from then on. A source that is trusted needs write:tasks."}, s.setMapping),
	}
}

type mappingIn struct {
	ID      string          `json:"id" format:"uuid" doc:"id of the source"`
	Mapping inbound.Mapping `json:"mapping" doc:"where a delivery has what is wanted"`
}

// check returns a fault that names what is wrong with the mapping.
func (in *mappingIn) check() error {
	wrong := in.Mapping.Check()
	if len(wrong) == 0 {
		return nil
	}
	f := fault.New(fault.Invalid, "", "The mapping cannot be used.")
	f.Fields = map[string][]string{}
	for name, what := range wrong {
		f.Fields["mapping."+name] = []string{what}
	}
	return f
}

var errNotGeneric = fault.Reason("not-generic", "Only deliveries of a source of the kind generic are read with a mapping.")

// Preview is the answer of integration.mapping_preview.
type Preview struct {
	_    struct{}  `doc:"What a mapping makes of deliveries." schema:"MappingPreview"`
	Data []Preread `json:"data" doc:"the last deliveries, newest first, at most ten; none if none was kept"`
}

// Preread is what a mapping makes of one delivery.
type Preread struct {
	_          struct{}  `doc:"A delivery as a mapping reads it." schema:"MappedDelivery"`
	DeliveryID string    `json:"delivery_id" format:"uuid" doc:"id of the delivery in the ledger"`
	ReceivedAt time.Time `json:"received_at" doc:"when it came"`
	Outcome    string    `json:"outcome" enum:"filed,dropped,ack" example:"filed" doc:"filed: an ask would be filed, or one that there is asked for again"`
	Reason     *Reason   `json:"reason" example:"null" doc:"why it would be dropped; null: it would not"`
	Title      string    `json:"title" example:"Disk of db-1 is nearly full" doc:"title of the ask; empty: the mapping finds none"`
	Body       string    `json:"body" example:"92 % of /var are in use." doc:"text of the ask, without what says where it came from"`
	DedupeKey  *string   `json:"dedupe_key" example:"disk/db-1" doc:"key of the ask; null: the mapping finds none"`
	Project    *string   `json:"project" example:"database" doc:"project that it is about; null: the mapping finds none"`
	Repo       *string   `json:"repo" example:"acme/web" doc:"repository that it is bound to; null: none"`
	URL        *string   `json:"url" example:"https://status.example.com/alerts/17" doc:"page that the ask names; null: the mapping finds none"`
}

func (s *Service) previewMapping(ctx context.Context, in mappingIn) (out Preview, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		src, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		if src.Kind != inbound.Generic {
			return errNotGeneric
		}
		rows, err := tried.All(tx, tx.Account, src.ID, maxTried)
		if err != nil {
			return err
		}
		out = Preview{Data: make([]Preread, 0, len(rows))}
		for _, r := range rows {
			e, _, err := inbound.Read(src.Kind, inbound.Request{Header: func(string) string { return "" }, Body: []byte(r.Body)},
				in.Mapping)
			if err != nil {
				return err
			}
			got, err := s.judge(tx, src, e)
			if err != nil {
				return err
			}
			p := Preread{
				DeliveryID: r.ID, ReceivedAt: r.ReceivedAt, Outcome: got.Outcome, Reason: (*Reason)(db.NullText(got.Reason)),
				Title:     e.Title,
				Body:      e.Text,
				DedupeKey: db.NullText(e.Key), Project: db.NullText(got.Project), URL: db.NullText(e.URL),
			}
			if got.Repo.ID != "" {
				p.Repo = new(got.Repo.FullName())
			}
			out.Data = append(out.Data, p)
		}
		return nil
	})
	return out, err
}

func (s *Service) setMapping(ctx context.Context, in mappingIn) (out Source, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		src, err := locked(tx, in.ID)
		if err != nil {
			return err
		}
		if src.Kind != inbound.Generic {
			return errNotGeneric
		}
		if err := trust(ctx, src.Trusted); err != nil {
			return err
		}
		if _, err := setMapping.Exec(tx, tx.Account, src.ID, db.JSON[inbound.Mapping]{V: in.Mapping}); err != nil {
			return err
		}
		shown, err := s.connected(tx, src.ID)
		if err != nil {
			return err
		}
		out = shown.Source
		return mappedEvent.Record(tx, event.Subject{ID: src.ID}, namedData{Name: src.Name})
	})
	return out, err
}
