package departure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// Errors of Remove.
var (
	ErrMoved = errors.New("the account has changed since the archive was made: make another one")
	ErrOther = errors.New("the archive is of another account")
)

// Remove removes an account of which there is an archive, in one transaction that acts for the
// platform: all rows that are the account's, and the people who belong to no other. ends is called
// first, for what other accounts have to be told. What is left to remove are files: Unfinished has them.
func Remove(tx *db.Tx, m Manifest, sum, program string, ends func(*db.Tx, string) error) error {
	account, ok, err := accountOf.Maybe(tx, m.Login)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("%w as %q", ErrNoAccount, m.Login)
	case account != m.AccountID:
		return ErrOther
	}
	if seq, hash, err := event.Head(tx, account); err != nil || seq != m.Record.Seq || hash != m.Record.Hash {
		return errors.Join(err, fmt.Errorf("%w (its record ends with row %d, and the archive with row %d)", ErrMoved, seq, m.Record.Seq))
	}
	if hosts, err := serving.All(tx, account); err != nil || len(hosts) > 0 {
		return errors.Join(err, fmt.Errorf("other accounts have repositories at the code host %s, which is the account's: "+
			"connect it to another account first", strings.Join(hosts, ", ")))
	}
	d := Deletion{AccountID: account, Login: m.Login, Program: program, Archive: sum, ArchiveMade: m.MadeAt, Record: m.Record,
		Removed: map[string]int64{}, Stays: map[string]Stays{}, Repositories: m.Repositories, Objects: m.Objects, RowsGoneAt: tx.Now}
	if err := d.rows(tx, ends); err != nil {
		return err
	}
	return insertRow(tx, d)
}

func insertRow(tx *db.Tx, d Deletion) error {
	_, err := insert.Exec(tx, row{ID: id.New(), AccountID: d.AccountID, Login: d.Login, Deletion: db.JSON[Deletion]{V: d}, BegunAt: tx.Now})
	return err
}

// rows removes the rows of the account and counts them.
func (d *Deletion) rows(tx *db.Tx, ends func(*db.Tx, string) error) error {
	people, err := peopleOf.All(tx, d.AccountID)
	if err != nil {
		return err
	}
	if err := ends(tx, d.AccountID); err != nil {
		return err
	}
	refs, err := db.References(tx)
	if err != nil {
		return err
	}
	goes, err := d.sorted(tx, refs)
	if err != nil {
		return err
	}
	drop, err := db.IndexReferences(tx, refs)
	if err != nil {
		return err
	}
	if err := d.remove(tx, goes); err != nil {
		return err
	}
	if err := d.people(tx, people, refs); err != nil {
		return err
	}
	return drop()
}

func (d *Deletion) remove(tx *db.Tx, goes []db.Part) (err error) {
	for _, p := range goes {
		var n int64
		if p.Table == "audit" {
			n, err = event.CloseChain(tx, d.AccountID, d.Login, d.Archive)
		} else {
			n, err = db.RemovePart(tx, p, d.AccountID)
		}
		if err != nil {
			return err
		}
		d.count(p.Table, n)
	}
	return nil
}

// sorted are the parts that go, in their order. It counts those that stay.
func (d *Deletion) sorted(tx *db.Tx, refs []db.Reference) ([]db.Part, error) {
	all, unknown, err := Parts(tx)
	if err == nil && len(unknown) > 0 {
		err = fmt.Errorf("it is not known whose the rows of %v are", unknown)
	}
	if err != nil {
		return nil, err
	}
	var goes []db.Part
	for _, p := range all {
		part := db.Part{Table: p.Table, Where: p.Where}
		switch {
		case p.Where == "":
		case p.Stays == "":
			goes = append(goes, part)
		default:
			n, err := db.CountPart(tx, part, d.AccountID)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				d.Stays[p.Table] = Stays{n, p.Stays}
			}
		}
	}
	return db.Order(goes, refs)
}

// personal are the tables whose rows go with a person, by the column that names them.
var personal = []db.Part{
	{Table: "identities", Where: "user_id = $1"},
	{Table: "personal_prompts", Where: "user_id = $1"},
	{Table: "password_links", Where: "user_id = $1"},
	{Table: "grants", Where: "user_id = $1"},
	{Table: "users", Where: "id = $1"},
}

// people removes those who belonged to the account alone. Whoever runs the platform, or is named by a
// row of another account, stays.
func (d *Deletion) people(tx *db.Tx, all []standing, refs []db.Reference) error {
	for _, p := range all {
		stays, err := named(tx, p, refs)
		if err != nil {
			return err
		}
		if stays {
			d.PeopleStay++
			continue
		}
		d.People++
		parts := personal
		if p.Email != "" {
			n, err := db.RemovePart(tx, db.Part{Table: "signin_codes", Where: "email = $1"}, p.Email)
			if err != nil {
				return err
			}
			d.count("signin_codes", n)
		}
		for _, part := range parts {
			n, err := db.RemovePart(tx, part, p.ID)
			if err != nil {
				return err
			}
			d.count(part.Table, n)
		}
	}
	return nil
}

func (d *Deletion) count(table string, n int64) {
	if n > 0 {
		d.Removed[table] += n
	}
}

func named(tx *db.Tx, p standing, refs []db.Reference) (bool, error) {
	if p.PlatformAdmin {
		return true, nil
	}
	for _, r := range refs {
		if r.To != "users" || slices.ContainsFunc(personal, func(own db.Part) bool { return own.Table == r.Table }) {
			continue
		}
		n, err := db.CountPart(tx, db.Part{Table: r.Table, Where: r.Column + " = $1"}, p.ID)
		if err != nil || n > 0 {
			return true, err
		}
	}
	return false, nil
}

// Unfinished is an account whose rows are gone and of which files are left.
type Unfinished struct {
	ID       string
	Deletion Deletion
}

// ReadUnfinished finds the deletion of an account that was begun and did not end.
func ReadUnfinished(tx *db.Tx, login string) (Unfinished, bool, error) {
	r, ok, err := unfinished.Maybe(tx, login)
	return Unfinished{r.ID, r.Deletion.V}, ok, err
}

// Taken tells whether a repository of a server has an account again.
func Taken(tx *db.Tx, r Repository) (bool, error) { return taken.One(tx, builtIn, r.Owner, r.Name) }

// Finish notes that the last file is gone, with the proof.
func Finish(tx *db.Tx, u Unfinished, envelope []byte, at time.Time) error {
	_, err := finish.Exec(tx, row{ID: u.ID, FinishedAt: &at, Envelope: string(envelope), Deletion: db.JSON[Deletion]{V: u.Deletion}})
	return err
}

// Proof returns the newest proof of an account of a login.
func Proof(tx *db.Tx, login string) (envelope string, ok bool, err error) {
	r, ok, err := newest.Maybe(tx, login)
	return r.Envelope, ok && r.FinishedAt != nil, err
}

// Has tells whether there is an account of a login.
func Has(tx *db.Tx, login string) (bool, error) {
	_, ok, err := accountOf.Maybe(tx, login)
	return ok, err
}
