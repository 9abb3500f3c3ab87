// Package notary notes the heads of the audit chains outside of the database,
// signed with a key that the database does not contain. At start, and whenever it
// notes heads, it reports the chains that do not match their notes any more. So an
// operator who has the database, but neither the file nor the master key, cannot
// cut a chain or write it anew without notice.
//
// The server keeps running after a break. The notes stay, so no evidence is lost;
// and if the server refused to run, anybody who can write one row could stop it.
package notary

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

const (
	checkEvery      = time.Minute // interval of the checks whether notes are due
	growth          = 1000        // new rows, over all chains, after which notes are due early
	deliveryTimeout = 10 * time.Second
)

// purpose is the purpose from which the signing keys are derived.
const purpose = "audit-heads"

// Signers returns the keys that sign notes, the newest first.
func Signers(ring *seal.Keyring) []ed25519.PrivateKey { return ring.Signers(purpose) }

// Notary notes heads. Its exported fields must not change after Start.
type Notary struct {
	DB     *db.DB
	Ring   *seal.Keyring
	Path   string        // path of the file of notes
	Every  time.Duration // interval of the notes
	Max    int           // limit of the file in bytes; 0 is 8 MiB
	Logger *slog.Logger

	Hook   string // address to which notes are posted; empty: none
	MailTo string // address to which notes are mailed; empty: none
	// Post queues a mail.
	Post func(tx *db.Tx, to, subject, text string) error

	mu       sync.Mutex
	signers  []ed25519.PrivateKey
	file     file
	started  bool
	unread   *hashchain.Book           // notes whose signatures are not all checked yet
	vouches  [][]byte                  // lines about keys that are still to be written
	last     map[string]hashchain.Note // by account: its newest note
	broken   map[string]Break
	reported map[string]bool // accounts whose break is noted
	noted    time.Time
	unmailed pending
	unposted pending
}

// Break is a chain that does not match a note.
type Break struct {
	Account string         // empty: the platform's chain
	Note    hashchain.Note // the note that the chain does not match
	Why     string
}

// Start reads the file, compares the database with it, and notes new heads. It
// returns the chains that do not match; they are no error.
func (n *Notary) Start(ctx context.Context) ([]Break, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b, there, err := n.open()
	if err == nil {
		err = n.file.writable()
	}
	if err != nil {
		return nil, fmt.Errorf("audit-heads-file: %w", err)
	}
	n.unread = b
	if err := n.introduce(ctx, b); err != nil {
		return nil, err
	}
	breaks, err := n.compare(ctx, b)
	if err != nil {
		return nil, err
	}
	var rows int64
	err = n.DB.Read(ctx, func(tx *db.Tx) error {
		all, err := heads.All(tx)
		for _, h := range all {
			rows += h.Seq
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !there && rows > 0 {
		n.Logger.WarnContext(ctx, "there was no file of audit heads: what was noted before cannot be compared, "+
			"and a new one begins with the record as it is", slog.String("file", n.Path))
	}
	n.started = true
	if err := n.note(ctx, breaks); err != nil { // for example on a full disk; it is tried again
		n.Logger.ErrorContext(ctx, "note the audit heads", slog.Any("error", err))
	}
	return breaks, nil
}

// open prepares the notary and reads the file.
func (n *Notary) open() (*hashchain.Book, bool, error) {
	n.signers = Signers(n.Ring)
	n.last, n.broken, n.reported = map[string]hashchain.Note{}, map[string]Break{}, map[string]bool{}
	n.file = file{path: n.Path, max: n.Max}
	if n.Max == 0 {
		n.file.max = maxSize
	}
	for _, k := range n.signers {
		n.file.trusted = append(n.file.trusted, k.Public().(ed25519.PublicKey))
	}
	return n.file.read()
}

// introduce makes notes of the public keys for which the newest key has not vouched
// yet, so that signatures of older keys stay valid after these keys are removed.
func (n *Notary) introduce(ctx context.Context, b *hashchain.Book) error {
	err := n.DB.Read(ctx, func(tx *db.Tx) error {
		n.vouches = nil
		for i, key := range n.file.trusted {
			if b.Introduced(n.file.trusted[0], key) {
				continue
			}
			_, line, err := hashchain.Sign(n.signers[0], tx.Now, hashchain.Note{
				Type: hashchain.NoteKey, PublicKey: hashchain.PublicKey(n.signers[i]),
			})
			if err != nil {
				return err
			}
			n.vouches = append(n.vouches, line)
		}
		return nil
	})
	if err == nil && n.vouches != nil {
		n.Logger.InfoContext(ctx, "audit heads are signed",
			slog.String("key", hashchain.KeyID(n.file.trusted[0])),
			slog.String("public_key", hashchain.PublicKey(n.signers[0])))
	}
	return err
}

// compare compares the database with the file.
func (n *Notary) compare(ctx context.Context, b *hashchain.Book) (breaks []Break, err error) {
	err = n.DB.Read(ctx, func(tx *db.Tx) error {
		breaks = nil
		for _, c := range b.Chains() {
			newest, line, ok := c.Newest()
			if !ok {
				continue
			}
			n.last[c.Account] = newest
			n.unmailed.add(newest, line) // it may not have been delivered before the last stop
			n.unposted.add(newest, line)
			for _, note := range c.Binding() {
				why, err := n.mismatch(tx, note, c)
				if err != nil {
					return err
				}
				if why != "" {
					breaks = append(breaks, Break{c.Account, note, why})
					break
				}
			}
		}
		return nil
	})
	return breaks, err
}

// mismatch says how the database differs from a note, or "". With c it also says up
// to which note the chain still matches.
func (n *Notary) mismatch(tx *db.Tx, note hashchain.Note, c *hashchain.Chain) (string, error) {
	if note.Seq == 0 {
		return "", nil
	}
	cut, why, err := event.CutOf(tx, note.Account)
	if err != nil || why != "" || note.Seq < cut.Through {
		return why, err // older rows are gone, as the chain says
	}
	found, err := hashAt(tx, note.Account, note.Seq)
	if note.Seq == cut.Through {
		found = cut.Hash
	}
	if err != nil || found == note.Hash {
		return "", err
	}
	top, err := newest(tx, note.Account)
	if err != nil {
		return "", err
	}
	var until *hashchain.Note
	if c != nil {
		until = c.Until(note, func(older hashchain.Note) bool {
			hash, e := hashAt(tx, note.Account, older.Seq)
			if e != nil {
				err = e
			}
			return hash == older.Hash || older.Seq <= cut.Through
		})
	}
	return hashchain.Mismatch(note, found, top, until), err
}

// Loop notes heads until ctx ends.
func (n *Notary) Loop(ctx context.Context) error {
	tick := time.NewTicker(min(checkEvery, n.Every))
	defer tick.Stop()
	n.proofread(ctx)
	for {
		n.deliver(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		in, end := observe.Pass(ctx, "notary.heads")
		err := n.pass(in)
		observe.Failed(in, err)
		end()
		if err != nil && ctx.Err() == nil {
			n.Logger.ErrorContext(ctx, "note the audit heads", slog.Any("error", err))
		}
	}
}

// proofread logs the lines of the file, as read at the start, that this server has
// not written. They have no other effect.
func (n *Notary) proofread(ctx context.Context) {
	n.mu.Lock()
	b := n.unread
	n.unread = nil
	n.mu.Unlock()
	if b == nil {
		return
	}
	b.Check()
	for _, bad := range b.Bad {
		n.Logger.ErrorContext(ctx, "the file of audit heads holds what this server has not written",
			slog.String("file", n.Path), slog.String("what", bad))
	}
}

// pass notes the changed heads if the interval is over or many rows are new.
func (n *Notary) pass(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := false
	err := n.DB.Read(ctx, func(tx *db.Tx) error {
		all, err := heads.All(tx)
		var more int64
		for _, h := range all {
			more += h.Seq - n.last[h.AccountID].Seq
		}
		due = more >= growth || tx.Now.Sub(n.noted) >= n.Every || tx.Now.Before(n.noted)
		return err
	})
	if err != nil || !due {
		return err
	}
	return n.note(ctx, nil)
}

// Close notes the heads a last time. Nothing may be recorded after it.
func (n *Notary) Close(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.started {
		return nil
	}
	return n.note(ctx, nil)
}

// note compares each chain that has grown with its newest note and notes its head.
// found are breaks that are known already.
func (n *Notary) note(ctx context.Context, found []Break) error {
	var fresh []hashchain.Note
	var now time.Time
	for _, b := range found {
		n.broken[b.Account] = b
	}
	err := n.DB.Read(ctx, func(tx *db.Tx) error {
		now = tx.Now
		fresh = nil
		all, err := heads.All(tx)
		if err != nil {
			return err
		}
		at := map[string]head{}
		for _, h := range all {
			at[h.AccountID] = h
		}
		for account := range n.last {
			if _, ok := at[account]; !ok {
				at[account] = head{AccountID: account}
			}
		}
		for _, account := range slices.Sorted(maps.Keys(at)) {
			h, last := at[account], n.last[account]
			if h.Seq == last.Seq && h.Hash == last.Hash {
				continue
			}
			if _, known := n.broken[account]; !known {
				why, err := n.mismatch(tx, last, nil)
				if err != nil {
					return err
				}
				if why == "" && h.Seq < last.Seq {
					why = fmt.Sprintf("the head was set back to %d from %d, noted at %s", h.Seq, last.Seq, last.Time)
				}
				if why != "" {
					n.broken[account] = Break{account, last, why}
				}
			}
			_, broken := n.broken[account]
			fresh = append(fresh, hashchain.Note{
				Type: hashchain.NoteHead, Account: account, Seq: h.Seq, Hash: h.Hash, AfterBreak: broken,
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, account := range slices.Sorted(maps.Keys(n.broken)) {
		b := n.broken[account]
		if !n.reported[account] {
			fresh = append(fresh, hashchain.Note{
				Type: hashchain.NoteBreak, Account: account, Seq: b.Note.Seq, Hash: b.Note.Hash, Reason: b.Why,
			})
		}
		n.Logger.ErrorContext(ctx, "the audit chain of an account is not what was noted of it",
			slog.String("account", name(account)), slog.Int64("seq", b.Note.Seq),
			slog.String("noted", b.Note.Time), slog.String("why", b.Why),
			slog.String("accept", "yardmaster audit accept REASON"))
	}
	if err := n.write(ctx, now, fresh); err != nil {
		return err
	}
	n.noted = now
	for account := range n.broken {
		n.reported[account] = true
	}
	return nil
}

// write signs notes, appends them to the file, logs them, and queues them for
// delivery.
func (n *Notary) write(ctx context.Context, now time.Time, notes []hashchain.Note) error {
	if len(notes) == 0 && n.vouches == nil {
		return nil
	}
	var lines [][]byte
	for i := range notes {
		signed, line, err := hashchain.Sign(n.signers[0], now, notes[i])
		if err != nil {
			return err
		}
		notes[i], lines = signed, append(lines, line)
	}
	if err := n.file.add(append(n.vouches, lines...)); err != nil {
		return fmt.Errorf("%s: %w", n.Path, err)
	}
	n.vouches = nil
	for i, s := range notes {
		if s.Type != hashchain.NoteBreak {
			n.last[s.Account] = s
		}
		n.Logger.InfoContext(ctx, "audit "+s.Type, slog.String("account", name(s.Account)),
			slog.Int64("seq", s.Seq), slog.String("hash", s.Hash), slog.Bool("after_break", s.AfterBreak),
			slog.String("noted", s.Time), slog.String("key", s.Key), slog.String("signature", s.Signature))
		n.unmailed.add(s, lines[i])
		n.unposted.add(s, lines[i])
	}
	return nil
}

func name(account string) string {
	if account == "" {
		return "the platform"
	}
	return account
}

// Accept accepts the chains that do not match as they are. It records the reason in
// each of them and notes it. No server that uses the file may run. It returns the
// accepted breaks.
func (n *Notary) Accept(ctx context.Context, reason string) ([]Break, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b, there, err := n.open()
	if err == nil && !there {
		err = errors.New("there is no file of audit heads: nothing was noted that could be wrong")
	}
	if err != nil {
		return nil, err
	}
	if err := n.introduce(ctx, b); err != nil {
		return nil, err
	}
	breaks, err := n.compare(ctx, b)
	if err != nil || len(breaks) == 0 {
		return nil, err
	}
	err = n.DB.Write(ctx, func(tx *db.Tx) error {
		for _, b := range breaks {
			err := acceptedEvent.Record(tx, event.Subject{ID: b.Note.Hash, Account: b.Account},
				acceptedData{Seq: b.Note.Seq, NotedAt: b.Note.Time, Found: b.Why, Reason: reason})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var notes []hashchain.Note
	var now time.Time
	err = n.DB.Read(ctx, func(tx *db.Tx) error {
		notes, now = nil, tx.Now
		all, err := heads.All(tx)
		for _, b := range breaks {
			note := hashchain.Note{Type: hashchain.NoteAccept, Account: b.Account, Reason: reason}
			if i := slices.IndexFunc(all, func(h head) bool { return h.AccountID == b.Account }); i >= 0 {
				note.Seq, note.Hash = all[i].Seq, all[i].Hash
			}
			notes = append(notes, note)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return breaks, n.write(ctx, now, notes)
}

// Introduce makes the newest key vouch for the others in an existing file, so that
// an old key can be removed.
func (n *Notary) Introduce(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	b, there, err := n.open()
	if err != nil || !there {
		return err
	}
	if err := n.introduce(ctx, b); err != nil {
		return err
	}
	return n.write(ctx, time.Time{}, nil)
}
