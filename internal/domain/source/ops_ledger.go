package source

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

// Delivery is a row of the ledger.
type Delivery struct {
	_          struct{}  `doc:"A delivery of a source." schema:"SourceDelivery"`
	ID         string    `json:"id" format:"uuid" doc:"id of the delivery"`
	Event      string    `json:"event" example:"issue.created" doc:"the system's name of what had happened; empty: it gave none"`
	Outcome    Outcome   `json:"outcome" example:"filed" doc:"filed: an ask was filed; noop: it was taken before, or there was an ask for it; dropped: it led to nothing; ack: it only tried the address"`
	Reason     *Reason   `json:"reason" example:"null" doc:"why it was dropped; null: it was not"`
	Title      string    `json:"title" example:"ReferenceError: heck is not defined" doc:"what it was about; empty: it had no title"`
	Project    *string   `json:"project" example:"front-end" doc:"the project there that it was about, as projects of the source may name it; null: it named none"`
	Repo       *string   `json:"repo" example:"acme/web" doc:"the repository that it was bound to; null: none"`
	AskID      *string   `json:"ask_id" format:"uuid" doc:"the ask; null: none"`
	Bytes      int64     `json:"bytes" example:"1840" doc:"length of its body"`
	ReceivedAt time.Time `json:"received_at" doc:"when it came"`
}

type deliveriesIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the source"`
	op.PageIn
}

func (s *Service) deliveries(ctx context.Context, in deliveriesIn) (page op.Page[Delivery], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		rows, err := listDeliveries(tx, in.PageIn, r.ID)
		if err != nil {
			return err
		}
		var ids []string
		for _, d := range rows {
			if d.RepoID != nil {
				ids = append(ids, *d.RepoID)
			}
		}
		repos, err := names(tx, ids)
		page = op.ShowPage(in.PageIn, rows, func(d deliveryRow) []string { return op.TimeKey(d.ReceivedAt, d.ID) },
			func(d deliveryRow) Delivery {
				o := Delivery{
					ID: d.ID, Event: d.Event, Outcome: Outcome(d.Outcome), Reason: (*Reason)(d.Reason), Title: d.Title,
					Project: db.NullText(d.Project),
					AskID:   d.AskID,
					Bytes:   d.Bytes, ReceivedAt: d.ReceivedAt,
				}
				if d.RepoID != nil {
					o.Repo = db.NullText(repos[*d.RepoID])
				}
				return o
			})
		return err
	})
	return page, err
}
