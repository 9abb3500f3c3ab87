package notification

import (
	"context"
	"slices"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

// Preference is a row of the matrix.
type Preference struct {
	_        struct{} `doc:"A kind of notification, and how the caller hears of it." schema:"NotificationPreference"`
	Kind     Kind     `json:"kind" or:"digest" doc:"the kind"`
	Doc      string   `json:"doc" example:"A pull request waits for your decision." doc:"what it tells"`
	Locked   bool     `json:"locked" doc:"it cannot be switched off"`
	Urgent   bool     `json:"urgent" doc:"quiet hours do not hold it back"`
	Channels Cells    `json:"channels" doc:"by channel, whether it is told there"`
}

// Cells are the channels of a kind.
type Cells struct {
	_       struct{} `doc:"Whether a kind is told, by channel." schema:"NotificationChannels"`
	Inbox   bool     `json:"inbox" doc:"as a row of notification.list"`
	Email   bool     `json:"email" doc:"as a mail to the caller's address"`
	Push    bool     `json:"push" doc:"as a message to the browsers that the caller has subscribed"`
	Webhook bool     `json:"webhook" doc:"as a message to the caller's own webhook"`
}

// Preferences is the matrix of a person.
type Preferences struct {
	_              struct{}     `doc:"What the caller is told of, and how." schema:"NotificationPreferences"`
	Data           []Preference `json:"data" doc:"every kind"`
	NextCursor     *string      `json:"next_cursor" example:"null" doc:"always null: the matrix is whole"`
	EmailRefusedAt *time.Time   `json:"email_refused_at" example:"null" doc:"since when mails of notifications are held back, because a mail server has refused the caller's address for good; null: none has"`
	Quiet          *string      `json:"quiet" example:"22:00-07:00 Europe/Berlin" doc:"the hours in which mails and push messages wait, those of urgent kinds excepted: from, to and a zone of the IANA database; null: none"`
}

// resolved is the matrix of a person as answers have it.
func (s *Service) resolved(tx *db.Tx, p person, userID string) (Preferences, error) {
	out := p.wire()
	address, err := people.Email(tx, userID)
	if err != nil || address == "" {
		return out, err
	}
	r, err := mail.Refused(tx, address)
	if r != nil {
		out.EmailRefusedAt = &r.At
	}
	return out, err
}

func (p person) wire() Preferences {
	out := Preferences{}
	for _, k := range kinds {
		out.Data = append(out.Data, Preference{Kind: Kind(k.name), Doc: k.doc, Locked: k.locked, Urgent: k.urgent, Channels: Cells{
			Inbox: p.wants(k, Inbox), Email: p.wants(k, Email), Push: p.wants(k, Push), Webhook: p.wants(k, Webhook),
		}})
	}
	if p.Quiet != nil {
		out.Quiet = new(p.Quiet.String())
	}
	return out
}

func (s *Service) prefs(ctx context.Context, _ op.None) (out Preferences, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		p, err := s.person(tx, policy.From(ctx).UserID)
		if err != nil {
			return err
		}
		out, err = s.resolved(tx, p, policy.From(ctx).UserID)
		return err
	})
	return out, err
}

type setIn struct {
	Matrix map[string]map[string]bool `json:"matrix,omitempty" example:"{\"task_done\": {\"email\": true}}" doc:"kinds, and in each whether a channel is on"`
	Quiet  *string                    `json:"quiet,omitempty" null:"empty" maxLength:"100" example:"22:00-07:00 Europe/Berlin" doc:"quiet hours: from, to and a zone of the IANA database; null or empty: none; left out: as they are"`
}

func (s *Service) setPrefs(ctx context.Context, in setIn) (out Preferences, err error) {
	q, err := in.check()
	if err != nil {
		return out, err
	}
	userID := policy.From(ctx).UserID
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, err := bump.One(tx, tx.Account, userID); err != nil {
			return err
		}
		before, err := s.person(tx, userID)
		if err != nil {
			return err
		}
		var data changedData
		for _, k := range kinds {
			for _, channel := range Channels() {
				on, said := in.Matrix[k.name][channel]
				if !said || on == before.wants(k, channel) {
					continue
				}
				cell := k.name + "/" + channel
				if on {
					data.On = append(data.On, cell)
				} else {
					data.Off = append(data.Off, cell)
				}
				if _, err := choose.Exec(tx, choice{
					AccountID: tx.Account, UserID: userID, Kind: k.name, Channel: channel, Enabled: on,
				}); err != nil {
					return err
				}
			}
		}
		if in.Quiet != nil {
			r := personRow{AccountID: tx.Account, UserID: userID}
			if q != nil {
				r.QuietFrom, r.QuietTo, r.QuietZone = int64(q.From), int64(q.To), q.Zone
			}
			if _, err := setQuiet.Exec(tx, r); err != nil {
				return err
			}
		}
		now, err := s.person(tx, userID)
		if err != nil {
			return err
		}
		if out, err = s.resolved(tx, now, userID); err != nil {
			return err
		}
		if data.On == nil && data.Off == nil && same(before.Quiet, now.Quiet) {
			return nil
		}
		if now.Quiet != nil {
			data.Quiet = new(now.Quiet.String())
		}
		return changedEvent.Record(tx, event.Subject{ID: userID}, data)
	})
	return out, err
}

// check reads what was sent, and refuses what does not exist or cannot be switched off.
func (in setIn) check() (*quiet, error) {
	for name, cells := range in.Matrix {
		k, ok := kindOf(name)
		if !ok {
			return nil, fault.Field("matrix."+name, "is no kind of notification")
		}
		for channel, on := range cells {
			switch {
			case !slices.Contains(Channels(), channel):
				return nil, fault.Field("matrix."+name+"."+channel, "is no channel: they are inbox, email, push and webhook")
			case k.locked && !on:
				return nil, fault.Field("matrix."+name+"."+channel, "cannot be switched off")
			case !k.allows(channel) && on:
				return nil, fault.Field("matrix."+name+"."+channel, "is not a way in which this kind is told")
			}
		}
	}
	if in.Quiet == nil || *in.Quiet == "" {
		return nil, nil
	}
	return parseQuiet(*in.Quiet)
}

func same(a, b *quiet) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
