package account

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/calendar"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// Zone is the time zone of an account.
type Zone struct {
	_    struct{} `doc:"The time zone of an account." schema:"AccountZone"`
	Zone string   `json:"zone" example:"Europe/Berlin" doc:"its name in the IANA database; UTC until it is set"`
}

func (s *Service) zoneGet(ctx context.Context, _ op.None) (out Zone, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out.Zone, err = people.Zone(tx, tx.Account)
		return err
	})
	return out, err
}

type zoneIn struct {
	Zone string `json:"zone" minLength:"1" maxLength:"64" example:"Europe/Berlin" doc:"a name of the IANA database, such as Europe/Berlin or UTC"`
}

func (s *Service) zoneSet(ctx context.Context, in zoneIn) (out Zone, err error) {
	if _, err := calendar.Zone(in.Zone); err != nil {
		return out, fault.Field("zone", err.Error())
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out = Zone{Zone: in.Zone}
		changed, err := people.SetZone(tx, tx.Account, in.Zone)
		if err != nil || !changed {
			return err
		}
		return zoneSetEvent.Record(tx, event.Subject{ID: tx.Account}, zoneSetData(in))
	})
	return out, err
}
