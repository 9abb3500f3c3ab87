package digest

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

// home is what the digests of an account go by.
type home struct {
	Zone      string
	CreatedAt time.Time
}

// key is the entry of the digests of a kind of an account.
func key(accountID, kind string) string { return accountID + "/" + kind }

func load(tx *db.Tx, _ string) (home, bool, error) { return homeOf.Maybe(tx, tx.Account) }

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// Plan has the digests of an account made at the hour of its zone, and none at that of the zone
// before.
func (s *Service) Plan(tx *db.Tx, accountID string) error {
	zone, err := people.Zone(tx, accountID)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		s.queue.Drop(tx, key(accountID, kind))
		wait := next(kind, tx.Now, place(zone)).Sub(tx.Now) // and no time: a clock that is set back puts none off
		s.queue.Add(tx, key(accountID, kind), due.Entry{Account: accountID, After: wait})
	}
	return nil
}

// made is a digest that is to be stored.
type made struct {
	row
	login string        // of the account
	wait  time.Duration // until the one after it is due
}

// make makes a digest that is due. What is in it is read first. Then one transaction stores the
// digest, queues its mails and puts the next one off: a node that dies before its end leaves all
// of it to another. Old digests of the account go with it.
func (s *Service) make(ctx context.Context, j due.Job[home]) due.Outcome {
	_, kind, _ := strings.Cut(j.Key, "/")
	var m made
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		m, err = s.draft(tx, kind, j.Row)
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "make a digest", err, slog.String("account", j.Account))
		return due.Again(err)
	}
	return due.Wait(m.wait).With(func(tx *db.Tx) error {
		if m.ID == "" {
			return nil
		}
		m.CreatedAt = tx.Now
		if n, err := insert.Exec(tx, m.row); err != nil || n == 0 {
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
		if _, err := forget.Exec(tx, tx.Account, tx.Now.Add(-s.Keep)); err != nil {
			return err
		}
		return madeEvent.Record(tx, event.Subject{ID: m.ID}, madeData{Headline: m.Headline, Kind: m.Kind, Period: m.Period, Quiet: m.Quiet})
	})
}

// draft reads what goes into the digest of a kind. The id is empty if there is one of its
// time already, or if the account is younger.
func (s *Service) draft(tx *db.Tx, kind string, h home) (m made, err error) {
	zone := place(h.Zone)
	end := before(kind, tx.Now, zone)
	m.wait = next(kind, tx.Now, zone).Sub(tx.Now)
	last, some, err := newest.Maybe(tx, tx.Account, kind)
	if err != nil {
		return m, err
	}
	var until *time.Time
	if some {
		until = &last.ToAt
	}
	from, to := span(kind, end, zone, until)
	if some && last.Period >= end.String() || !from.Before(to) || !h.CreatedAt.Before(to) {
		return m, nil
	}
	if m.login, err = people.AccountLogin(tx, tx.Account); err != nil {
		return m, err
	}
	c, err := s.gather(tx, from, to)
	m.row = row{
		ID: id.New(), AccountID: tx.Account, Kind: kind, Period: end.String(), Zone: h.Zone, FromAt: from, ToAt: to,
		Headline: c.headline(), Quiet: c.quiet(), Content: db.JSON[Content]{V: c},
	}
	return m, err
}
