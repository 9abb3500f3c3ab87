package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

const (
	passEvery = 5 * time.Second
	// longestWait is how long an account is not measured that sends nothing.
	longestWait = time.Hour
	// shortestWait is how long an account is not measured again, however much it sends.
	shortestWait = time.Minute
	// workShare is how many times as long as a measure took an account is not measured
	// again: measures of one account take a fiftieth of a node.
	workShare = 50
	// hold is how long a node has an account to measure.
	hold = 15 * time.Minute
)

// Loop writes what accounts have sent, and measures those that are due, until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	observe.Every(ctx, "quota.measure", passEvery, func(ctx context.Context) {
		if err := s.Pass(ctx); err != nil {
			observe.Complain(ctx, s.Logger, "measure what accounts store", err)
		}
	})
	return nil
}

// Pass is one pass of Loop.
func (s *Service) Pass(ctx context.Context) error {
	if err := s.flush(ctx); err != nil {
		return err
	}
	var fresh bool
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		fresh, err = anyNewcomer.One(tx)
		return err
	}); err != nil {
		return err
	}
	if fresh {
		if err := s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := newcomers.Exec(tx, tx.Micros())
			return err
		}); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		due, err := db.Claim(ctx, s.DB, anyDue, func(tx *db.Tx) ([]string, error) {
			return takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)))
		})
		if err != nil || len(due) == 0 {
			return err
		}
		var failed error
		for _, account := range due {
			if err := s.Measure(ctx, account); err != nil {
				failed = errors.Join(failed, fmt.Errorf("account %s: %w", account, err))
			}
		}
		if failed != nil {
			return failed // they are due again after hold
		}
	}
	return nil
}

// flush writes what accounts have sent to this node, and forgets those that send nothing.
func (s *Service) flush(ctx context.Context) error {
	sent := map[string]int64{}
	now := s.Clock()
	s.mu.Lock()
	for account, k := range s.known {
		switch {
		case k.received > 0:
			sent[account] = k.received
		case now.Sub(k.used) > forgotten:
			delete(s.known, account)
		}
	}
	s.mu.Unlock()
	for account, bytes := range sent {
		var row stateRow
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			if _, err := received.Exec(tx, receivedArgs{AccountID: account, Bytes: bytes, Now: tx.Now}); err != nil {
				return err
			}
			var err error
			row, _, err = state(tx, account)
			return err
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		if k := s.known[account]; k != nil {
			k.received -= bytes
			k.state, k.at = row, now
		}
		s.mu.Unlock()
	}
	return nil
}

// Measure counts what an account has, and tells its admins of what is nearly full.
func (s *Service) Measure(ctx context.Context, account string) error {
	began := s.Clock()
	accounted, repos, err := s.measureRecords(ctx, account)
	if err != nil {
		return err
	}
	for _, r := range repos {
		bytes, err := s.Sizes.Size(codehost.Repo{Host: codehost.BuiltIn, Owner: r.Owner, Name: r.Name})
		if errors.Is(err, codehost.ErrAway) {
			continue // it has what it had when it was measured last
		}
		if errors.Is(err, codehost.ErrNotFound) || errors.Is(err, codehost.ErrLost) {
			bytes, err = 0, nil
		}
		if err != nil {
			return err
		}
		if err := s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := saveSize.Exec(tx, sizeArgs{RepoID: r.ID, AccountID: account, Bytes: bytes, MeasuredAt: tx.Now})
			return err
		}); err != nil {
			return err
		}
	}
	took := s.Clock().Sub(began)
	err = s.DB.Write(db.WithAccount(ctx, account), func(tx *db.Tx) error {
		accounted.AccountID, accounted.MeasuredAt = account, tx.Now
		accounted.RestUntil = tx.Now.Add(max(shortestWait, workShare*took))
		accounted.DueAt = tx.Now.Add(max(longestWait, workShare*took))
		before, ok, err := state(tx, account)
		if err != nil || !ok {
			return err
		}
		if _, err := lockMeasures.Exec(tx, account, tx.Now); err != nil {
			return err
		}
		accounted.Told.V = before.Told.V
		if _, err := measured.Exec(tx, accounted); err != nil {
			return err
		}
		now, _, err := state(tx, account)
		if err != nil {
			return err
		}
		return tell(tx, now, accounted)
	})
	if err != nil {
		return err
	}
	s.forget(account)
	return nil
}

// measureRecords counts the records of an account, and lists its repositories of the
// built-in host.
func (s *Service) measureRecords(ctx context.Context, account string) (out measuredArgs, repos []repoRow, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out = measuredArgs{}
		var err error
		if out.Accounted, _, err = receivedOf.Maybe(tx, account); err != nil {
			return err
		}
		records, err := recordsOf.One(tx, account)
		if err != nil {
			return err
		}
		out.Records, out.RecordBytes = records.Records, records.Bytes
		if out.ObjectBytes, err = objectsOf.One(tx, account); err != nil {
			return err
		}
		repos, err = reposOf.All(tx, account, codehost.BuiltIn)
		return err
	})
	return out, repos, err
}

// tell records what has come to be nearly full, and notes what no longer is.
func tell(tx *db.Tx, row stateRow, args measuredArgs) error {
	var told []string
	for _, l := range row.levels() {
		was := slices.Contains(row.Told.V, l.thing)
		switch {
		case l.share(highShare) && !was:
			err := NearlyFullEvent.Record(tx, event.Subject{ID: tx.Account}, NearlyFull{Thing: l.thing, Used: l.used, Most: l.most})
			if err != nil {
				return err
			}
			told = append(told, l.thing)
		case was && l.share(lowShare):
			told = append(told, l.thing)
		}
	}
	if slices.Equal(told, row.Told.V) {
		return nil
	}
	args.Told.V, args.Accounted = told, 0
	if told == nil {
		args.Told.V = []string{}
	}
	_, err := measured.Exec(tx, args)
	return err
}
