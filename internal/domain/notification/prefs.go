package notification

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // machines without zones of their own

	"yardmaster/internal/calendar"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// person is what somebody has chosen in an account.
type person struct {
	chosen map[[2]string]bool // kind and channel
	Quiet  *quiet
}

// wants tells whether a kind reaches the person by a channel.
func (p person) wants(k kind, channel string) bool {
	if k.locked || !k.allows(channel) {
		return k.locked && k.allows(channel)
	}
	if on, said := p.chosen[[2]string{k.name, channel}]; said {
		return on
	}
	return slices.Contains(k.on, channel)
}

// person reads what somebody has chosen in tx.Account.
func (s *Service) person(tx *db.Tx, userID string) (person, error) {
	p := person{chosen: map[[2]string]bool{}}
	of, ok, err := personOf.Maybe(tx, tx.Account, userID)
	if err != nil {
		return p, err
	}
	if ok && of.QuietZone != "" {
		p.Quiet = &quiet{From: int(of.QuietFrom), To: int(of.QuietTo), Zone: of.QuietZone}
	}
	all, err := choices.All(tx, tx.Account, userID)
	for _, c := range all {
		p.chosen[[2]string{c.Kind, c.Channel}] = c.Enabled
	}
	return p, err
}

// Wants tells whether a kind reaches a person of tx.Account by a channel, and from when.
// It is for those who write the mails of a kind themselves.
func (s *Service) Wants(tx *db.Tx, userID, kindName, channel string) (wanted bool, from time.Time, err error) {
	k, ok := kindOf(kindName)
	if !ok {
		return false, tx.Now, fmt.Errorf("no kind of notification %q", kindName)
	}
	p, err := s.person(tx, userID)
	return p.wants(k, channel), p.opens(tx.Now, k), err
}

// advance counts a change of the inbox of a person, and keeps other transactions from it
// until this one ends, so that whoever reads on from a number misses nothing.
func (s *Service) advance(tx *db.Tx, userID string) (rev int64, err error) {
	if rev, err = bump.One(tx, tx.Account, userID); err == nil {
		s.Hub.Notify(tx, Topic(userID))
	}
	return rev, err
}

// quiet is a time of the day in which nothing is sent that can wait: minutes since
// midnight in a zone. It ends on the next day if To is before From.
type quiet struct {
	From, To int
	Zone     string
}

// ends is now outside of the quiet hours, and their end within them.
func (q quiet) ends(now time.Time) time.Time {
	zone, err := time.LoadLocation(q.Zone)
	if err != nil {
		return now
	}
	here := now.In(zone)
	minute := here.Hour()*60 + here.Minute()
	day := here.Day()
	switch {
	case q.From <= q.To && (minute < q.From || minute >= q.To), q.From > q.To && minute < q.From && minute >= q.To:
		return now
	case q.From > q.To && minute >= q.From:
		day++
	}
	// Date moves a time that a change of the clock leaves out to the next there is.
	return time.Date(here.Year(), here.Month(), day, q.To/60, q.To%60, 0, 0, zone)
}

// String is how people write quiet hours: 22:00-07:00 Europe/Berlin.
func (q quiet) String() string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d %s", q.From/60, q.From%60, q.To/60, q.To%60, q.Zone)
}

// parseQuiet reads what String has written.
func parseQuiet(text string) (*quiet, error) {
	hours, zone, _ := strings.Cut(text, " ")
	from, to, _ := strings.Cut(hours, "-")
	begin, err := time.Parse("15:04", from)
	end, err2 := time.Parse("15:04", to)
	q := quiet{From: begin.Hour()*60 + begin.Minute(), To: end.Hour()*60 + end.Minute(), Zone: zone}
	if err != nil || err2 != nil || q.From == q.To {
		return nil, fault.Field("quiet", "must be from, to and a zone, such as 22:00-07:00 Europe/Berlin")
	}
	if _, err := calendar.Zone(zone); err != nil {
		return nil, fault.Field("quiet", "names no zone of the IANA database")
	}
	return &q, nil
}
