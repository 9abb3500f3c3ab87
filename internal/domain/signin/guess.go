package signin

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
)

// Wrong tries delay further ones by the name that is typed, whether or not a user has
// it, and whatever addresses the tries come from. The first few cost nothing, then
// the wait doubles, up to maxWait. That leaves 1440 tries a day at most. Tries from
// an address from which the user signed in lately are counted apart, so others do not
// delay the user there.
const (
	freeTries   = 5
	maxWait     = time.Minute         // wait between two tries
	forgetAfter = time.Hour           // after the last wrong try
	warnAt      = 10                  // wrong tries after which the user gets a mail
	warnEvery   = 24 * time.Hour      // between two such mails
	homeLife    = 30 * 24 * time.Hour // how long a sign-in makes an address the user's own
)

// Kinds of guesses. Each is counted separately.
const (
	guessPassword = "password"
	guessCode     = "code"
	guessSession  = "session" // the password of a signed-in user
)

// wait returns how long no further try is made after that many wrong tries in a row.
func wait(failures int64) time.Duration {
	if failures < freeTries {
		return 0
	}
	return min(maxWait, time.Second<<min(failures-freeTries, 10))
}

// try is a try that has been counted. It counts as a wrong one until succeed, so that
// simultaneous tries all count. person and home are the counters of the name and of
// the name at the caller's network; counted is the one that was used.
type try struct{ person, home, counted string }

// target is the user whom a try is about, with the address for the warning. The zero
// value is no user.
type target struct{ User, Account, Email string }

// countTry counts a try, or returns fault.RateLimited with the time to wait. Neither
// its work nor its answer shows whether a user has the name.
func (s *Service) countTry(ctx context.Context, what, name string, of target) (t try, err error) {
	ip := op.RequestOf(ctx).IP
	t = try{person: s.hashName(what, name, ""), home: s.hashName(what, name, network(ip))}
	var refused error
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		refused = nil
		if _, err := purgeGuesses.Exec(tx, db.Micros(tx.Now.Add(-warnEvery)), db.Micros(tx.Now.Add(-homeLife))); err != nil {
			return err
		}
		t.counted = t.person
		if _, own, err := isHome.Maybe(tx, t.home, db.Micros(tx.Now.Add(-homeLife))); err != nil {
			return err
		} else if own {
			t.counted = t.home
		}
		n, free, err := countGuess.Maybe(tx, t.counted, tx.Micros(), db.Micros(tx.Now.Add(-forgetAfter)))
		if err != nil {
			return err
		}
		if !free {
			until, err := nextGuess.One(tx, t.counted)
			refused = slowDown(until.Sub(tx.Now))
			return err
		}
		if _, err := delayGuess.Exec(tx, t.counted, db.Micros(tx.Now.Add(wait(n)))); err != nil || n < warnAt {
			return err
		}
		told, err := tellGuess.Exec(tx, t.counted, tx.Micros(), db.Micros(tx.Now.Add(-warnEvery)))
		if err != nil || told == 0 || of.Email == "" {
			return err
		}
		return s.warn(tx, of, n, ip)
	})
	if err == nil {
		err = refused
	}
	return t, err
}

func slowDown(d time.Duration) error {
	d = max(time.Second, d.Round(time.Second))
	in := "a second"
	if d > time.Second {
		in = fmt.Sprintf("%d seconds", int(d.Seconds()))
	}
	return fault.Newf(fault.RateLimited, "", "There were too many wrong tries with this name. Try again in %s.", in).After(d)
}

// hashName returns the stored form of a name. Names are not stored as they are,
// because people type passwords there, too.
func (s *Service) hashName(what, name, network string) string {
	return hex.EncodeToString(s.Ring.Sign("signin-guess", []byte(what+"\x00"+name+"\x00"+network)))
}

// network returns the key by which an address is counted: an IPv4 address, or the /64
// of an IPv6 address.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// succeed clears the wrong tries, and records that the user has signed in from the
// address.
func (t try) succeed(tx *db.Tx) error {
	if _, err := clearGuesses.Exec(tx, t.counted); err != nil {
		return err
	}
	_, err := noteHome.Exec(tx, t.home, tx.Micros())
	return err
}

// uncountTry uncounts a try for which no password was checked.
func (s *Service) uncountTry(ctx context.Context, t try) error {
	return s.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		_, err := uncountGuess.Exec(tx, t.counted)
		return err
	})
}

// warn mails the user that somebody guesses, and records the event.
func (s *Service) warn(tx *db.Tx, of target, n int64, ip string) error {
	warning := mail.Page{
		Lead: fmt.Sprintf("Somebody has tried to sign in to Yardmaster as you %d times, each time wrongly, the last time from %s.", n, ip),
		Notes: []string{
			"Nobody got in by that. Further tries are slowed down: if you have to wait for them yourself, it is a minute at most.",
			"If it was not you, and your password is a weak one or used elsewhere, change it.",
		},
		Reason: "You get this mail once a day at most.",
	}
	if of.Account == "" {
		var err error
		if of.Account, _, err = people.FirstAccount(tx, of.User); err != nil {
			return err
		}
	}
	if err := s.Mail.Post(tx, warning.Message(of.Email, "Somebody tries to sign in as you")); err != nil {
		return err
	}
	return guessedEvent.Record(tx, event.Subject{ID: of.User, Account: of.Account}, guessedData{Tries: n, IP: ip})
}
