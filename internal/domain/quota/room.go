package quota

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

const (
	// fresh is how long a node judges requests by what it has read of an account.
	fresh = 10 * time.Second
	// forgotten is how long a node remembers an account that sends nothing.
	forgotten = 10 * time.Minute
	// unknownBody is what a request without a length is taken to have.
	unknownBody = 64 << 10
	// beyondShare is how much of what it may have an account has, in percent, when all it may
	// do is to end and delete things: each change leaves a row in the record.
	beyondShare = 110
)

// SlugFull is the slug of every refusal because something is full.
const SlugFull = "quota-full"

// known is what this node knows of an account.
type known struct {
	state    stateRow
	at       time.Time // when it was read
	received int64     // bytes of requests since, which no row shows yet
	used     time.Time
}

// full is the refusal of what has no room.
func full(l level) *fault.Error {
	return fault.Newf(fault.StorageFull, SlugFull, "%s; nothing was changed. Delete what is not needed, or ask an operator of the server to "+
		"raise it.", sentence(l)).OnPurpose().With("quota", l.thing).With("used", l.used).With("most", l.most)
}

// sentence says what is full, and how much it holds.
func sentence(l level) string {
	if l.used > l.most {
		return fmt.Sprintf("The account has %d %s, and may have %d", l.used, Text(l.thing), l.most)
	}
	return fmt.Sprintf("The account has all %d %s that it may have", l.most, Text(l.thing))
}

// read is what this node knows of an account, no older than fresh.
func (s *Service) read(ctx context.Context, account string) (*known, error) {
	now := s.Clock()
	s.mu.Lock()
	k := s.known[account]
	if k != nil && now.Sub(k.at) < fresh {
		k.used = now
		s.mu.Unlock()
		return k, nil
	}
	s.mu.Unlock()
	var row stateRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		row, _, err = state(tx, account)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k = s.known[account]; k == nil {
		k = &known{}
		s.known[account] = k
	}
	k.state, k.at, k.used = row, now, now
	return k, nil
}

// Writes implements op.Quota.
func (s *Service) Writes(ctx context.Context, account string) (int, error) {
	k, err := s.read(ctx, account)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(max(k.state.limits().WritesPerMinute, 0)), nil
}

// Admit implements op.Quota. It looks at what is on record alone: repositories, tokens and
// objects are judged where they are made.
func (s *Service) Admit(ctx context.Context, account string, o *op.Op, bytes int64) error {
	k, err := s.read(ctx, account)
	if err != nil {
		return err
	}
	if bytes < 0 {
		bytes = unknownBody
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !k.state.limited() {
		return nil
	}
	for _, l := range k.state.levels() {
		if l.thing != RecordBytes && l.thing != Records {
			continue
		}
		if l.thing == RecordBytes {
			l.used += k.received
		}
		if l.full() && makes(o) || l.share(beyondShare) && !frees(o) {
			return full(l)
		}
	}
	k.received += bytes
	return nil
}

// makes tells whether an op makes something that stays.
func makes(o *op.Op) bool {
	made := func(status int) bool { return status == 201 || status == 202 }
	return !frees(o) && (made(o.Status) || slices.ContainsFunc(o.Also, made))
}

// ends are the verbs of ops that end something.
var ends = []string{"cancel", "revoke", "withdraw", "resolve", "dismiss", "drain", "decommission", "leave", "archive", "decline"}

// frees tells whether an op goes on in an account that is beyond what it may have: it
// deletes or ends something.
func frees(o *op.Op) bool {
	_, verb, _ := strings.Cut(o.ID, ".")
	return o.Method == "DELETE" || slices.Contains(ends, verb)
}

// check refuses in a transaction that has added to a thing, unless the account may have as
// much as it has now.
func check(tx *db.Tx, account, thing string) error {
	if _, err := lockMeasures.Exec(tx, account, tx.Now); err != nil {
		return err
	}
	row, ok, err := state(tx, account)
	if err != nil || !ok {
		return err
	}
	for _, l := range row.levels() {
		if l.thing == thing && l.most != None && l.used > l.most {
			l.used = l.most // the one more is refused
			return full(l)
		}
	}
	return nil
}

// RepoMade refuses a repository of the built-in host that is one too many for tx.Account.
// The transaction has added it.
func RepoMade(tx *db.Tx) error { return check(tx, tx.Account, Repos) }

// BoxEnrolled refuses a box that is one too many for tx.Account: each holds a connection of
// the bus. The transaction has added it.
func BoxEnrolled(tx *db.Tx, _ event.None) error { return check(tx, tx.Account, Boxes) }

// TokenMinted refuses a token that is one too many for tx.Account or for the user, if there
// is one. The transaction has added it.
func TokenMinted(tx *db.Tx, userID string) error {
	if err := check(tx, tx.Account, Tokens); err != nil || userID == "" {
		return err
	}
	row, ok, err := state(tx, tx.Account)
	if err != nil || !ok {
		return err
	}
	most := row.limits().PersonTokens
	if most == None {
		return nil
	}
	n, err := personTokens.One(tx, tx.Account, userID, tx.Micros())
	if err == nil && n > most {
		err = fault.Newf(fault.StorageFull, SlugFull, "You have %d live tokens in this account, which is the most; nothing was changed. "+
			"Revoke one that is not needed, or ask an operator of the server to raise it.", most).
			OnPurpose().With("quota", PersonTokens).With("used", most).With("most", most)
	}
	return err
}

// NearlyFull lists the things of which tx.Account has at least four fifths of what it may have.
func (s *Service) NearlyFull(tx *db.Tx) ([]string, error) {
	row, _, err := state(tx, tx.Account)
	out := []string{}
	for _, l := range row.levels() {
		if l.share(highShare) {
			out = append(out, l.thing)
		}
	}
	return out, err
}

// PushRoom is how many bytes an account may still push, and the sentence for a push that
// has more; None: as many as it likes.
func (s *Service) PushRoom(ctx context.Context, account string) (left int64, sentenceFull string, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		left, sentenceFull = None, ""
		row, ok, err := state(tx, account)
		if err != nil || !ok {
			return err
		}
		if most := row.limits().GitBytes; most != None {
			left = max(0, most-row.GitBytes)
			sentenceFull = fmt.Sprintf("the account has %d of the %d bytes that its repositories may have, and this push does not fit: "+
				"delete branches, or ask an operator of the server to raise it", row.GitBytes, most)
		}
		return nil
	})
	return left, sentenceFull, err
}

// Pushed measures a repository of the built-in host that was pushed to.
func (s *Service) Pushed(ctx context.Context, r codehost.Repo) error {
	bytes, err := s.Sizes.Size(r)
	if err != nil {
		return fmt.Errorf("measure %s: %w", r, err)
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		at, ok, err := repoAt.Maybe(tx, r.Host, r.Owner, r.Name)
		if err != nil || !ok {
			return err
		}
		_, err = saveSize.Exec(tx, sizeArgs{RepoID: at.ID, AccountID: at.AccountID, Bytes: bytes, MeasuredAt: tx.Now})
		return err
	})
}

// ObjectRoom fails unless an account may store so many bytes more of objects.
func (s *Service) ObjectRoom(ctx context.Context, account string, bytes int64) error {
	return s.DB.Read(ctx, func(tx *db.Tx) error {
		row, ok, err := state(tx, account)
		if err != nil || !ok {
			return err
		}
		used, err := objectsOf.One(tx, account)
		if err != nil {
			return err
		}
		if most := row.limits().ObjectBytes; most != None && used+bytes > most {
			return full(level{ObjectBytes, used, most, false})
		}
		return nil
	})
}

// ObjectsLeft is how many bytes of objects an account may still store, and the sentence for
// one that does not fit; None: as many as it likes.
func (s *Service) ObjectsLeft(ctx context.Context, account string) (left int64, sentenceFull string, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		left, sentenceFull = None, ""
		row, ok, err := state(tx, account)
		if err != nil || !ok {
			return err
		}
		used, err := objectsOf.One(tx, account)
		if most := row.limits().ObjectBytes; most != None {
			left = max(0, most-used)
			sentenceFull = fmt.Sprintf("The account has %d of the %d bytes in objects that it may have, and this one does not fit. "+
				"An operator of the server can raise it.", used, most)
		}
		return err
	})
	return left, sentenceFull, err
}

// ObjectMade refuses an object that is too much for tx.Account. The transaction has added it.
func (s *Service) ObjectMade(tx *db.Tx) error {
	if _, err := lockMeasures.Exec(tx, tx.Account, tx.Now); err != nil {
		return err
	}
	row, ok, err := state(tx, tx.Account)
	if err != nil || !ok {
		return err
	}
	used, err := objectsOf.One(tx, tx.Account)
	if most := row.limits().ObjectBytes; err == nil && most != None && used > most {
		err = full(level{ObjectBytes, used, most, false})
	}
	return err
}
