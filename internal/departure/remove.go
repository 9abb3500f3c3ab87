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

// Rest is what is left to do when the rows of an account are gone.
type Rest struct {
	Mails []string `json:"mails,omitempty"` // ids of its mails, which may be files
	Gone  []string `json:"gone,omitempty"`  // addresses of people who went: mails to them may be files
	Tell  []string `json:"tell,omitempty"`  // addresses that the proof is mailed to
}

// Who has an account deleted.
const (
	ByOwner    = "owner"
	ByOperator = "operator"
)

// Why says why an account cannot be deleted as it is; "": it can.
func Why(tx *db.Tx, account string) (string, error) {
	hosts, err := serving.All(tx, account)
	if err != nil || len(hosts) > 0 {
		return "Other accounts have repositories at the code host " + strings.Join(hosts, ", ") + ", which is the account's: " +
			"connect it to another account first.", err
	}
	return "", nil
}

// Alone tells whether an account is the only one of the server.
func Alone(tx *db.Tx, account string) (bool, error) { return isAlone.One(tx, account) }

// Remove removes an account in one transaction that acts for the platform: all rows that are the
// account's, and the people who belong to no other. sum is that of the archive; empty: an owner has it
// deleted without one. ends is called first, for what other accounts have to be told. What is left to
// remove are files: Unfinished has them.
func Remove(tx *db.Tx, m Manifest, sum, program string, ends func(*db.Tx, string) error) (departure string, err error) {
	account, ok, err := accountOf.Maybe(tx, m.Login)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", fmt.Errorf("%w as %q", ErrNoAccount, m.Login)
	case account != m.AccountID:
		return "", ErrOther
	}
	if seq, hash, err := event.Head(tx, account); err != nil || seq != m.Record.Seq || hash != m.Record.Hash {
		return "", errors.Join(err, fmt.Errorf("%w (its record ends with row %d, and the archive with row %d)", ErrMoved, seq, m.Record.Seq))
	}
	if why, err := Why(tx, account); err != nil || why != "" {
		return "", errors.Join(err, errors.New(why))
	}
	d := Deletion{AccountID: account, Login: m.Login, Program: program, Archive: sum, ArchiveMade: m.MadeAt, Record: m.Record,
		By: ByOperator, Removed: map[string]int64{}, Stays: map[string]Stays{}, Repositories: m.Repositories, Objects: m.Objects,
		Mirrors: []Mirror{}, RowsGoneAt: tx.Now}
	rest, err := d.outside(tx, m.Mails)
	if err != nil {
		return "", err
	}
	if err := d.rows(tx, ends, &rest); err != nil {
		return "", err
	}
	departure = id.New()
	_, err = insert.Exec(tx, row{ID: departure, AccountID: d.AccountID, Login: d.Login, Deletion: db.JSON[Deletion]{V: d}, BegunAt: tx.Now,
		Rest: db.JSON[Rest]{V: rest}})
	return departure, err
}

// outside notes what the account has in files of the server besides repositories and objects.
func (d *Deletion) outside(tx *db.Tx, mails []string) (rest Rest, err error) {
	rest.Mails = mails
	if d.Archive == "" {
		d.By = ByOwner
		if rest.Tell, err = ownersOf.All(tx, d.AccountID); err != nil {
			return rest, err
		}
	}
	mirrors, err := mirrorsOf.All(tx, d.AccountID)
	for _, m := range mirrors {
		d.Mirrors = append(d.Mirrors, Mirror{Host: m.Host, Number: m.Number})
	}
	return rest, err
}

// rows removes the rows of the account and counts them.
func (d *Deletion) rows(tx *db.Tx, ends func(*db.Tx, string) error, rest *Rest) error {
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
	if err := d.people(tx, people, refs, rest); err != nil {
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
func (d *Deletion) people(tx *db.Tx, all []standing, refs []db.Reference, rest *Rest) error {
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
			rest.Gone = append(rest.Gone, p.Email)
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
	Rest     Rest
}

// Again removes rows that requests which were under way have left since Remove, and counts them.
func (u *Unfinished) Again(tx *db.Tx) error {
	refs, err := db.References(tx)
	if err != nil {
		return err
	}
	d := Deletion{AccountID: u.Deletion.AccountID, Login: u.Deletion.Login, Archive: u.Deletion.Archive, Removed: u.Deletion.Removed,
		Stays: map[string]Stays{}}
	goes, err := d.sorted(tx, refs)
	if err != nil {
		return err
	}
	late, err := db.CountPart(tx, db.Part{Table: "audit", Where: own}, d.AccountID)
	if late == 0 { // its end is told already
		goes = slices.DeleteFunc(goes, func(p db.Part) bool { return p.Table == "audit" })
	}
	if err != nil {
		return err
	}
	return d.remove(tx, goes)
}

// MirrorTaken tells whether an account has the repository of a copy.
func MirrorTaken(tx *db.Tx, m Mirror) (bool, error) { return mirrorTaken.One(tx, m.Host, m.Number) }

// UnfinishedByID finds the deletion of an account that did not end.
func UnfinishedByID(tx *db.Tx, departure string) (Unfinished, bool, error) {
	r, ok, err := byID.Maybe(tx, departure)
	return Unfinished{r.ID, r.Deletion.V, r.Rest.V}, ok, err
}

// ReadUnfinished finds the deletion of an account that was begun and did not end.
func ReadUnfinished(tx *db.Tx, login string) (Unfinished, bool, error) {
	r, ok, err := unfinished.Maybe(tx, login)
	return Unfinished{r.ID, r.Deletion.V, r.Rest.V}, ok, err
}

// Taken tells whether a repository of a server has an account again.
func Taken(tx *db.Tx, r Repository) (bool, error) { return taken.One(tx, builtIn, r.Owner, r.Name) }

// Finish notes that the last file is gone, with the proof.
func Finish(tx *db.Tx, u Unfinished, envelope []byte, at time.Time) error {
	_, err := finish.Exec(tx, row{ID: u.ID, FinishedAt: &at, Envelope: string(envelope),
		Deletion: db.JSON[Deletion]{V: u.Deletion}})
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
