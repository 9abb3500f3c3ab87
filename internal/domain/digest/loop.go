package digest

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	topic  = "digests"
	sweep  = 30 * time.Second
	atOnce = 100 // rows that are read at once
)

// Loop makes the digests that are due until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "digests.sweep", topic, sweep, s.Pass)
	return nil
}

// Pass makes the digests that are due now, and removes old ones once an hour.
func (s *Service) Pass(ctx context.Context) {
	if err := s.planAll(ctx); err != nil {
		observe.Complain(ctx, s.Logger, "find when digests are due", err)
		return
	}
	for at := (dueArgs{Most: atOnce}); ctx.Err() == nil; {
		var rows []dueRow
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			at.Now = tx.Micros()
			rows, err = due.All(tx, at)
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "read which digests are due", err)
			return
		}
		for _, r := range rows {
			at.dueRow = r
			if err := s.make(db.WithAccount(ctx, r.AccountID), r); err != nil {
				observe.Complain(ctx, s.Logger, "make a digest", err, slog.String("account", r.AccountID))
			}
		}
		if len(rows) < atOnce {
			break
		}
	}
	err := s.tidy.Do(ctx, s.DB, func(tx *db.Tx) error {
		_, err := forget.Exec(tx, tx.Now.Add(-s.Keep))
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "remove old digests", err)
	}
}

// planAll notes when the next digests are due of accounts that are new, or whose zone has
// changed.
func (s *Service) planAll(ctx context.Context) error {
	for ctx.Err() == nil {
		var rows []placeRow
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			rows, err = unplanned.All(tx, atOnce)
			return err
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			for _, a := range rows {
				for _, kind := range kinds {
					at := dueRow{AccountID: a.ID, Kind: kind, Zone: a.Zone, DueAt: db.Micros(next(kind, tx.Now, place(a.Zone)))}
					if _, err := plan.Exec(tx, at); err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// made is a digest that is to be stored.
type made struct {
	row
	login string // of the account
	next  int64  // when the one after it is due
}

// make makes a digest. What is in it is read first. Then one transaction moves on to the
// next one, stores the digest and queues its mails: a node that dies before its end leaves
// all of it to another.
func (s *Service) make(ctx context.Context, d dueRow) error {
	var m made
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		m, err = s.draft(tx, d)
		return err
	})
	if err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := move.Exec(tx, moveArgs{dueRow: d, To: m.next})
		if err != nil || n == 0 || m.ID == "" {
			return err
		}
		m.CreatedAt = tx.Now
		if n, err = insert.Exec(tx, m.row); err != nil || n == 0 {
			return err
		}
		if !m.Quiet {
			letter, err := s.letter(m)
			if err != nil {
				return err
			}
			if err := s.Mails.Mail(tx, letter); err != nil {
				return err
			}
		}
		return madeEvent.Record(tx, event.Subject{ID: m.ID}, madeData{Headline: m.Headline, Kind: m.Kind, Period: m.Period, Quiet: m.Quiet})
	})
}

// draft reads what goes into a digest that is due. The id is empty if there is one of its
// time already.
func (s *Service) draft(tx *db.Tx, d dueRow) (m made, err error) {
	zone := place(d.Zone)
	end := before(d.Kind, tx.Now, zone)
	m.next = db.Micros(next(d.Kind, tx.Now, zone))
	last, some, err := newest.Maybe(tx, tx.Account, d.Kind)
	if err != nil {
		return m, err
	}
	var until *time.Time
	if some {
		until = &last.ToAt
	}
	from, to := span(d.Kind, end, zone, until)
	if some && last.Period >= end.String() || !from.Before(to) {
		return m, nil
	}
	if m.login, err = people.AccountLogin(tx, tx.Account); err != nil {
		return m, err
	}
	c, err := s.gather(tx, from, to)
	m.row = row{
		ID: id.New(), AccountID: tx.Account, Kind: d.Kind, Period: end.String(), Zone: d.Zone, FromAt: from, ToAt: to,
		Headline: c.headline(), Quiet: c.quiet(), Content: db.JSON[Content]{V: c},
	}
	return m, err
}
