package join

import (
	"context"
	"errors"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/event"
	"yardmaster/internal/remote"
)

// Reason is why a machine did not become a box.
type Reason string

// Reasons of a failure besides those of package remote.
const (
	interrupted = "interrupted"
	notJoined   = "not_joined"
)

// Values lists all reasons.
func (Reason) Values() []string { return append(remote.Reasons(), notJoined, interrupted) }

func load(tx *db.Tx, key string) (r row, ok bool, err error) {
	r, ok, err = byID.Maybe(tx, tx.Account, key)
	return r, ok && r.EndedAt == nil, err
}

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// giveUp ends a row whose work ended the node.
func giveUp(tx *db.Tx, key, _ string) error {
	r, ok, err := load(tx, key)
	if err != nil || !ok {
		return err
	}
	return fail(tx, r, "", &remote.Failure{Reason: interrupted, Detail: "The server was stopped more than once meanwhile."})
}

var errStopped = errors.New("join: the server stops")

// carry dials a machine.
func (s *Service) carry(ctx context.Context, j due.Job[row]) due.Outcome {
	r := j.Row
	if r.State == joining { // by a node that was stopped
		return due.Done(func(tx *db.Tx) error {
			return s.settle(tx, r.ID, "", &remote.Failure{Reason: interrupted,
				Detail: "The server was stopped while it called the machine. Look whether the box has come, and ask again if not."})
		})
	}
	if err := s.own(ctx, r.AccountID, func(tx *db.Tx) error {
		j.Renew(tx)
		n, err := begin.Exec(tx, tx.Account, r.ID)
		if err == nil && n == 0 {
			err = due.ErrLost
		}
		return err
	}); err != nil {
		return due.Again(err)
	}
	output, err := s.call(ctx, r)
	if ctx.Err() != nil {
		return due.Again(errStopped)
	}
	failure, known := errors.AsType[*remote.Failure](err)
	if err != nil && !known {
		return due.Again(err) // which ends it as interrupted
	}
	return due.Done(func(tx *db.Tx) error { return s.settle(tx, r.ID, output, failure) })
}

// own runs fn in a transaction of an account.
func (s *Service) own(ctx context.Context, account string, fn func(*db.Tx) error) error {
	return s.DB.Write(db.WithAccount(ctx, account), fn)
}

// call runs the script on the machine. The token is made once the machine has let the server in,
// and is given on.
func (s *Service) call(ctx context.Context, r row) (output string, err error) {
	if s.Key == nil {
		return "", &remote.Failure{Reason: interrupted, Detail: "The server has no key for SSH any more."}
	}
	signer, err := s.Key.Of(r.AccountID)
	if err != nil {
		return "", err
	}
	token := ""
	output, err = remote.Run(ctx, s.Guard.Dialer(greeting), remote.Script{
		At: r.place(), HostKey: remote.HostKey(r.HostKey), Signer: signer,
		Text: func(ctx context.Context) (string, error) {
			programs, err := s.Boxes.Handed(ctx)
			if err != nil {
				return "", err
			}
			var minted box.Minted
			err = s.own(ctx, r.AccountID, func(tx *db.Tx) (err error) {
				wish := box.Wish{Name: r.Name, Slots: r.Slots, Labels: r.Labels.V, By: r.CreatedBy}
				if minted, err = s.Boxes.Mint(tx, wish); err != nil {
					return err
				}
				_, err = setToken.Exec(tx, tx.Account, r.ID, minted.ID)
				return err
			})
			token = minted.Token
			return box.Detached(r.URL, token, waitBox, programs), err
		},
	})
	if token != "" {
		output = strings.ReplaceAll(output, token, "[redacted]")
	}
	return output, err
}

// settle records what became of a machine: whether it is a box is for the enrollment to say.
func (s *Service) settle(tx *db.Tx, joinID, output string, failure *remote.Failure) error {
	r, ok, err := load(tx, joinID)
	if err != nil || !ok {
		return err
	}
	if r.EnrollmentID != nil {
		boxID, is, err := s.Boxes.Joined(tx, *r.EnrollmentID)
		if err != nil {
			return err
		}
		if is {
			args := endArgs{AccountID: tx.Account, ID: r.ID, State: joined, Output: output, BoxID: &boxID, Now: tx.Micros()}
			if _, err := end.Exec(tx, args); err != nil {
				return err
			}
			return joinedEvent.Record(tx, event.Subject{ID: r.ID}, joinedData{At: r.place().String(), BoxID: boxID})
		}
	}
	if failure == nil {
		failure = &remote.Failure{Reason: notJoined, Detail: "The script ended well, and no box has come."}
	}
	return fail(tx, r, output, failure)
}

func fail(tx *db.Tx, r row, output string, f *remote.Failure) error {
	args := endArgs{AccountID: tx.Account, ID: r.ID, State: failed, Output: output, Reason: &f.Reason, Detail: &f.Detail, Now: tx.Micros()}
	if f.Seen != nil {
		seen := remote.Public(f.Seen)
		args.Seen = &seen
	}
	if _, err := end.Exec(tx, args); err != nil {
		return err
	}
	return failedEvent.Record(tx, event.Subject{ID: r.ID}, failedData{At: r.place().String(), Reason: f.Reason})
}
