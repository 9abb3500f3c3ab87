package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/departure"
	"yardmaster/internal/domain/closure"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/domain/payment"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event/hashchain"
	"yardmaster/internal/flow"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

// closure adds the deletion of accounts by their owners. It answers what hears that a user has other rights.
func (a *App) closure(p *wired, pays *payment.Service) (unasked func(*db.Tx, string) error) {
	return add(p, closure.New(closure.Needs{
		DB: a.db, Due: a.due, Logger: a.log, Wait: days(a.cfg.DeletionWait), Payments: pays, Departures: departures{a},
		Work: flow.ClosureWork{Tasks: p.task, Boxes: p.box},
	})).RightsChanged
}

// departures removes accounts from a server that runs.
type departures struct{ a *App }

// May says why an account cannot be deleted as it is.
func (d departures) May(tx *db.Tx, account string) (string, error) {
	alone, err := departure.Alone(tx, account)
	if err != nil || alone {
		return "It is the only account of this server: whoever runs the server removes that.", err
	}
	return departure.Why(tx, account)
}

// Remove removes the rows of an account. What its owners have asked for is not stopped by what they
// have done since.
func (d departures) Remove(tx *db.Tx, account string) (id string, err error) {
	login, err := people.AccountLogin(tx, account)
	if err != nil {
		return "", err
	}
	m, err := departure.List(tx, login)
	if err != nil {
		return "", err
	}
	if err := here(tx, d.a.cfg, m.Repositories); err != nil {
		return "", err
	}
	named, err := namedObjects(tx, tx.Now)
	for _, o := range named {
		if strings.HasPrefix(o.Key, account+"/") {
			m.Objects = append(m.Objects, departure.Object{Key: o.Key, Size: o.Size})
		}
	}
	if err == nil {
		m.Mails, err = mail.IDsOf(tx, account)
	}
	if err != nil {
		return "", err
	}
	return departure.Remove(tx, m, "", d.a.opts.Version, donation.Bereft)
}

// Left tells whether files are left of a departure.
func (d departures) Left(tx *db.Tx, id string) (bool, error) {
	_, ok, err := departure.UnfinishedByID(tx, id)
	return ok, err
}

// Finish removes the files of an account, signs the proof and mails it to those who were its owners.
func (d departures) Finish(ctx context.Context, id string) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	var u departure.Unfinished
	var ok bool
	err := d.a.db.Read(ctx, func(tx *db.Tx) (err error) { u, ok, err = departure.UnfinishedByID(tx, id); return err })
	if err != nil || !ok {
		return err
	}
	k := &KeyChest{cfg: d.a.cfg, db: d.a.db, ring: d.a.ring}
	_, err = Departure{Version: d.a.opts.Version, Out: io.Discard, told: d.mail}.files(ctx, k, u)
	return err
}

// mostMailed is the longest proof that is mailed, in bytes: mail servers take no long mails.
const mostMailed = 500_000

func (d departures) mail(tx *db.Tx, u departure.Unfinished, proof string) (err error) {
	text := fmt.Sprintf("The account %s is deleted, as an owner has asked. The line below is the proof. Whoever has Yardmaster checks it "+
		"in a file, with the server's public key:\n\n  yardmaster account proof FILE --key %s\n\n", u.Deletion.Login,
		hashchain.PublicKey(departure.Signer(d.a.ring)))
	if len(proof) > mostMailed {
		text += "The proof is too long for a mail: whoever runs the server has it.\n"
	} else {
		text += proof + "\n"
	}
	for _, to := range u.Rest.Tell {
		m := mail.Message{To: to, Subject: "The account " + u.Deletion.Login + " is deleted", Text: text}
		err = errors.Join(err, d.a.mail.Post(tx, m))
	}
	return err
}
