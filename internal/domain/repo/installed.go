package repo

import (
	"cmp"
	"context"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// LossReason is why the server lost its access to a repository.
type LossReason string

// Reasons why the server lost its access to a repository.
const (
	LostRemoved   = "removed"
	LostSuspended = "suspended"
	LostDeleted   = "deleted"
	LostArchived  = "archived"
	LostMoved     = "moved"
)

// Values lists all reasons.
func (LossReason) Values() []string {
	return []string{LostRemoved, LostSuspended, LostDeleted, LostArchived, LostMoved}
}

// Made is sent, with its host, in the transaction that adds a repository to tx.Account. An
// error undoes it.
var Made = event.DeclareSignal[string]("repo.made", "A repository is being made known.")

// Installed is sent with a repository that the server has access to from now on.
var Installed = event.DeclareSignal[Ref]("repo.reachable", "The server has access to a repository of another host.")

// Lost is sent with a repository that the server has lost its access to; its Gone says why.
var Lost = event.DeclareSignal[Ref]("repo.lost", "The server has lost its access to a repository.")

// located finds a repository by its permanent id at its host or, at a host without such
// ids, by its name there, in whatever account.
func located(tx *db.Tx, r codehost.Repo) (row, bool, error) {
	if r.ID == "" {
		return byPlace.Maybe(tx, r.Host, r.Owner, r.Name)
	}
	return byHostID.Maybe(tx, r.Host, r.ID)
}

// At finds a repository of whatever account by its identity at its host, as events of
// the host name it.
func At(tx *db.Tx, r codehost.Repo) (Ref, bool, error) {
	found, ok, err := located(tx, r)
	return found.ref(), ok, err
}

// Reachable finds a repository of whatever account that is enabled, and whose host lets
// the server in; false if there is none of that id.
func Reachable(tx *db.Tx, repoID string) (Ref, bool, error) {
	r, ok, err := byIDAnywhere.Maybe(tx, repoID)
	return r.ref(), ok && r.Enabled && r.GoneAt == nil, err
}

// Take makes a repository of another host one of tx.Account: a new one, or one that
// the server has lost or another account had. A repository that the account has
// already is brought up to date.
func Take(tx *db.Tx, i codehost.RepoInfo, installation string) error {
	known, ok, err := located(tx, i.Repo)
	if err != nil {
		return err
	}
	if ok && known.AccountID != tx.Account {
		err := tx.As(known.AccountID, func() error { return release(tx, known) })
		if err != nil {
			return err
		}
		ok = false
	}
	if ok {
		if _, err := setInstallation.Exec(tx, known.ID, installation); err != nil {
			return err
		}
		if err := describe(tx, known, i); err != nil || i.Archived {
			return err
		}
		if known.GoneAt == nil && known.InstallationID != installation { // nothing has told that the one before ended
			now, _, err := byID.Maybe(tx, tx.Account, known.ID)
			if err != nil {
				return err
			}
			return Installed.Send(tx, now.ref())
		}
		return regain(tx, known)
	}
	if err := freeName(tx, i.Repo); err != nil {
		return err
	}
	// A host does not always tell the default branch: until it is read, that is main.
	newID, err := Install(tx, i.Repo, cmp.Or(i.DefaultBranch, "main"), i.Private)
	if err != nil {
		return err
	}
	if _, err := setInstallation.Exec(tx, newID, installation); err != nil {
		return err
	}
	if _, err := setRefreshDue.Exec(tx, tx.Account, newID, tx.Now); err != nil {
		return err
	}
	r, _, err := byID.Maybe(tx, tx.Account, newID)
	if err != nil {
		return err
	}
	if i.Archived {
		return lose(tx, r, LostArchived)
	}
	return Installed.Send(tx, r.ref())
}

// Adopt makes a repository known that the server has had made for tx.Account, and answers
// its id. A repository that its host, or a first push, has made known already is
// answered; it fails with codehost.ErrExists if that is another account's. installation
// is empty at a host without installations.
func Adopt(tx *db.Tx, i codehost.RepoInfo, installation string) (string, error) {
	known, ok, err := located(tx, i.Repo)
	if err != nil {
		return "", err
	}
	if ok && known.AccountID != tx.Account {
		return "", codehost.ErrExists
	}
	if installation == "" {
		if ok {
			return known.ID, nil
		}
		return Install(tx, i.Repo, cmp.Or(i.DefaultBranch, "main"), i.Private)
	}
	if err := Take(tx, i, installation); err != nil {
		return "", err
	}
	known, _, err = located(tx, i.Repo)
	return known.ID, err
}

// freeName renames another repository that is recorded under a name which its host has
// given away. The host tells its new name later.
func freeName(tx *db.Tx, r codehost.Repo) error {
	other, taken, err := byPlace.Maybe(tx, r.Host, r.Owner, r.Name)
	if err != nil || !taken || other.HostRepoID == r.ID {
		return err
	}
	_, err = setName.Exec(tx, other.ID, other.Owner, other.Name+"~"+other.ID[:8])
	return err
}

// describe records the name and the properties of a repository.
func describe(tx *db.Tx, known row, i codehost.RepoInfo) error {
	if known.Owner != i.Repo.Owner || known.Name != i.Repo.Name {
		if err := freeName(tx, i.Repo); err != nil {
			return err
		}
		if _, err := setName.Exec(tx, known.ID, i.Repo.Owner, i.Repo.Name); err != nil {
			return err
		}
		moved := movedData{From: known.Owner + "/" + known.Name, To: i.Repo.String()}
		if err := movedEvent.Record(tx, event.Subject{ID: known.ID, RepoID: known.ID}, moved); err != nil {
			return err
		}
	}
	branch := i.DefaultBranch
	if branch == "" {
		branch = known.DefaultBranch
	}
	if branch == known.DefaultBranch && i.Private == known.Private && i.Archived == known.Archived {
		return nil
	}
	_, err := setProperties.Exec(tx, setPropertiesArgs{
		ID: known.ID, DefaultBranch: branch, Private: i.Private, Archived: i.Archived, Now: tx.Micros(),
	})
	if err == nil && branch != known.DefaultBranch { // its policy file is in force
		_, err = setRefreshDue.Exec(tx, known.AccountID, known.ID, tx.Now)
	}
	return err
}

// Lose records that the server lost its access to a repository. A repository that is
// unknown, or lost already, changes nothing.
func Lose(tx *db.Tx, r codehost.Repo, why string) error {
	known, ok, err := located(tx, r)
	if err != nil || !ok {
		return err
	}
	return tx.As(known.AccountID, func() error { return lose(tx, known, why) })
}

// LoseAll records that the server lost its access to all repositories of an
// installation.
func LoseAll(tx *db.Tx, host, installation, why string) error {
	rows, err := ofInstallation.All(tx, host, installation)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := tx.As(r.AccountID, func() error { return lose(tx, r, why) }); err != nil {
			return err
		}
	}
	return nil
}

func lose(tx *db.Tx, r row, why string) error {
	n, err := setGone.Exec(tx, r.ID, tx.Micros(), why)
	if err == nil && n == 0 && (why == LostDeleted || why == LostMoved) {
		_, err = setGoneWhy.Exec(tx, r.ID, why) // a deletion is told as a removal, too, in any order
	}
	if err != nil || n == 0 {
		return err
	}
	now := r.ref()
	now.Enabled, now.Gone = false, why
	if err := Lost.Send(tx, now); err != nil {
		return err
	}
	return GoneEvent.Record(tx, event.Subject{ID: r.ID, RepoID: r.ID},
		goneData{Repo: r.Owner + "/" + r.Name, Host: r.Host, Why: LossReason(why)})
}

// regain records that the server has access to a repository again, which is enabled
// if it was before.
func regain(tx *db.Tx, r row) error {
	enabled := r.EnabledBefore
	if enabled {
		other, taken, err := enabledByName.Maybe(tx, tx.Account, r.Owner, r.Name)
		if err != nil {
			return err
		}
		enabled = !taken || other == r.ID
	}
	n, err := setBack.Exec(tx, r.ID, enabled)
	if err != nil || n == 0 {
		return err
	}
	back := installedData{Repo: r.Owner + "/" + r.Name, Host: r.Host}
	if err := BackEvent.Record(tx, event.Subject{ID: r.ID, RepoID: r.ID}, back); err != nil {
		return err
	}
	now, _, err := byID.Maybe(tx, tx.Account, r.ID)
	if err != nil {
		return err
	}
	return Installed.Send(tx, now.ref())
}

// release parts a repository of tx.Account from its host for good: the repository
// belongs to another account there.
func release(tx *db.Tx, r row) error {
	if err := lose(tx, r, LostMoved); err != nil {
		return err
	}
	if _, err := setName.Exec(tx, r.ID, r.Owner, r.Name+"~"+r.ID[:8]); err != nil {
		return err
	}
	_, err := part.Exec(tx, r.ID)
	return err
}

// HostChanged is Changed in a transaction of its own.
func (s *Service) HostChanged(ctx context.Context, e codehost.RepoEvent) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		s.Hub.Notify(tx, event.RepoTopic) // the policy file of another default branch is to be read
		return Changed(tx, e)
	})
}

// Changed records what a host tells of a repository: its name, its properties, and that
// the repository is gone or archived. An event about an unknown one changes nothing: the
// installation tells which repositories there are.
func Changed(tx *db.Tx, e codehost.RepoEvent) error {
	known, ok, err := located(tx, e.Info.Repo)
	if err != nil || !ok {
		return err
	}
	return tx.As(known.AccountID, func() error {
		if e.Gone {
			return lose(tx, known, LostDeleted)
		}
		if err := describe(tx, known, e.Info); err != nil {
			return err
		}
		switch {
		case e.Info.Archived:
			return lose(tx, known, LostArchived)
		case known.Archived && known.GoneAt != nil:
			return regain(tx, known)
		}
		return nil
	})
}
