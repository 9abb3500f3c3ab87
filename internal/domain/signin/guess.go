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

// How wrong tries slow further ones down, by the name that is typed, whether or
// not it is anybody's, and from however many addresses they come: the first few
// cost nothing, then the wait doubles. Whoever guesses on has 1440 tries a day
// at most. The person themself waits no longer than longest; from an address
// that they have signed in from lately, the tries of others do not count.
const (
	freeTries = 5
	longest   = time.Minute         // wait between two tries
	forgotten = time.Hour           // after the last wrong try
	warnAt    = 10                  // wrong tries, at which the person is told
	warnEvery = 24 * time.Hour      // at most
	homeFor   = 30 * 24 * time.Hour // an address counts as the person's own
)

// What is guessed at. Each is counted apart.
const (
	byPasswordOf = "password"
	byCodeOf     = "code"
	bySessionOf  = "session" // of who is signed in already
)

// wait is how long nothing is tried after so many wrong tries in a row.
func wait(failures int64) time.Duration {
	if failures < freeTries {
		return 0
	}
	return min(longest, time.Second<<min(failures-freeTries, 10))
}

// guess is a try that is under way. It counts as a wrong one until it is known
// to be right, so that many at once are many.
type guess struct{ person, home, counted string }

// person whose mail is told of guesses. The zero value is nobody.
type guessed struct{ User, Account, Email string }

// turn counts a try, or refuses it with 429 and says for how long. Nothing in
// what it does or answers tells whether the name is anybody's.
func (s *Service) turn(ctx context.Context, what, name string, of guessed) (g guess, err error) {
	ip := op.RequestOf(ctx).IP
	g = guess{person: s.nameless(what, name, ""), home: s.nameless(what, name, site(ip))}
	var refused error
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		refused = nil
		if _, err := purgeGuesses.Exec(tx, db.Micros(tx.Now.Add(-warnEvery)), db.Micros(tx.Now.Add(-homeFor))); err != nil {
			return err
		}
		g.counted = g.person
		if _, own, err := atHome.Maybe(tx, g.home, db.Micros(tx.Now.Add(-homeFor))); err != nil {
			return err
		} else if own {
			g.counted = g.home
		}
		n, free, err := countGuess.Maybe(tx, g.counted, tx.Micros(), db.Micros(tx.Now.Add(-forgotten)))
		if err != nil {
			return err
		}
		if !free {
			until, err := nextGuess.One(tx, g.counted)
			refused = slowDown(until.Sub(tx.Now))
			return err
		}
		if _, err := delayGuess.Exec(tx, g.counted, db.Micros(tx.Now.Add(wait(n)))); err != nil || n < warnAt {
			return err
		}
		told, err := tellGuess.Exec(tx, g.counted, tx.Micros(), db.Micros(tx.Now.Add(-warnEvery)))
		if err != nil || told == 0 || of.Email == "" {
			return err
		}
		return s.warn(tx, of, n, ip)
	})
	if err == nil {
		err = refused
	}
	return g, err
}

func slowDown(d time.Duration) error {
	d = max(time.Second, d.Round(time.Second))
	in := "a second"
	if d > time.Second {
		in = fmt.Sprintf("%d seconds", int(d.Seconds()))
	}
	return fault.Newf(fault.RateLimited, "", "There were too many wrong tries with this name. Try again in %s.", in).After(d)
}

// nameless is what is stored of a name: people type passwords there, too.
func (s *Service) nameless(what, name, site string) string {
	return hex.EncodeToString(s.Ring.Sign("signin-guess", []byte(what+"\x00"+name+"\x00"+site)))
}

// site is what an address is counted as: itself, or its /64.
func site(address string) string {
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

// right forgets the wrong tries, and that the address is the person's.
func (g guess) right(tx *db.Tx) error {
	if _, err := forgiveGuess.Exec(tx, g.counted); err != nil {
		return err
	}
	_, err := homeGuess.Exec(tx, g.home, tx.Micros())
	return err
}

// untried takes back a try that was not made after all.
func (s *Service) untried(ctx context.Context, g guess) error {
	return s.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		_, err := backGuess.Exec(tx, g.counted)
		return err
	})
}

// warn tells a person that somebody guesses.
func (s *Service) warn(tx *db.Tx, of guessed, n int64, ip string) error {
	text := fmt.Sprintf("Somebody has tried to sign in to Yardmaster as you %d times, each time wrongly, the last time from %s.\n\n"+
		"Nobody got in by that. Further tries are slowed down: if you have to wait for them yourself, it is a minute at most.\n"+
		"If it was not you, and your password is a weak one or used elsewhere, change it.\n\nYou get "+
		"this mail once a day at most.\n", n, ip)
	if of.Account == "" {
		var err error
		if of.Account, _, err = people.FirstAccount(tx, of.User); err != nil {
			return err
		}
	}
	if err := s.Mail.Post(tx, mail.Message{To: of.Email, Subject: "Somebody tries to sign in as you", Text: text}); err != nil {
		return err
	}
	return guessedEvent.Record(tx, event.Subject{ID: of.User, Account: of.Account}, guessedData{Tries: n, IP: ip})
}
