package connection

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// mostTwice is how often an installation is applied that another transaction makes known at
// the same time.
const mostTwice = 5

// errTwice undoes a transaction that has made the account of an owner, as another one has
// meanwhile.
var errTwice = errors.New("connection: the owner was given an account meanwhile")

// Installation applies what a host tells of an installation: the account and its
// repositories. Its first repositories, if the event does not list them, are read by
// Reconcile. Several events of one new installation may come at the same time.
func (s *Service) Installation(ctx context.Context, host string, e codehost.InstallationEvent) error {
	return s.apply(ctx, host, e, time.Time{})
}

// errMeanwhile says that a host has told of installations or repositories since a reading of
// them began: what was read may be older than that, and would undo it.
var errMeanwhile = errors.New("connection: the host has told something meanwhile")

// apply applies what was told or, with the time at which the reading began, read. It fails with
// errMeanwhile, and changes nothing, if the host has told something since that time.
func (s *Service) apply(ctx context.Context, host string, e codehost.InstallationEvent, began time.Time) error {
	for tries := 1; ; tries++ {
		err := s.installation(ctx, host, e, began)
		if errors.Is(err, errStranger) {
			s.Logger.WarnContext(ctx, "somebody has installed the App who is not let in: nothing of theirs is taken; "+
				"github-app-owners lets them in", slog.String("host", host), slog.String("owner", e.Installation.Owner.Login))
			return nil
		}
		if tries == mostTwice || !errors.Is(err, errTwice) && !db.IsUnique(err) {
			return err
		}
	}
}

func (s *Service) installation(ctx context.Context, host string, e codehost.InstallationEvent, began time.Time) error {
	i := e.Installation
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		// Locked first: what is told from here on is applied after this.
		known, ok, err := lockInstallation.Maybe(tx, host, i.ID)
		if err != nil {
			return err
		}
		if !began.IsZero() {
			if told, err := s.Told.Since(tx, host, began); err != nil || told {
				return cmp.Or(err, errMeanwhile)
			}
		}
		if i.Gone {
			return s.end(tx, host, i, repo.LostRemoved)
		}
		account := known.AccountID
		if !ok || known.GoneAt != nil && s.Home != "" {
			if account, err = s.account(tx, host, i); err != nil {
				return err
			}
		}
		return tx.As(account, func() error {
			if err := s.note(tx, host, i, known, ok && known.GoneAt == nil); err != nil {
				return err
			}
			if i.Suspended {
				return repo.LoseAll(tx, host, i.ID, repo.LostSuspended)
			}
			for _, r := range e.Added {
				if err := repo.Take(tx, r, i.ID); err != nil {
					return err
				}
			}
			s.Hub.Notify(tx, event.RepoTopic) // the policy files are to be read
			for _, r := range e.Removed {
				if err := repo.Lose(tx, r, repo.LostRemoved); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Grant is an installation whose owner has changed what the App may do.
type Grant struct {
	Host, InstallationID string
	Permissions          map[string]string // what the App may do now: levels by name
}

// Granted is sent when the owner of an installation has changed what the App may do.
var Granted = event.DeclareSignal[Grant]("connection.granted", "The owner of an installation has changed what the App may do.")

// GrantPage is the page at a host on which the owners of installations accept what the App
// asks for; "" if the App is one of the configuration.
func (s *Service) GrantPage(tx *db.Tx, host string) (string, error) {
	h, ok, err := byHost.Maybe(tx, host)
	if err != nil || !ok {
		return "", err
	}
	return s.Maker.InstallAddress(h.Address, App{Slug: h.Slug}), nil
}

// note records an installation, if anything about it has changed.
func (s *Service) note(tx *db.Tx, host string, i codehost.Installation, known installationRow, there bool) error {
	same := there && known.OwnerLogin == i.Owner.Login && maps.Equal(known.Permissions.V, i.Permissions) &&
		(known.SuspendedAt != nil) == i.Suspended
	if same {
		return nil
	}
	a := installArgs{
		Host: host, ID: i.ID, OwnerID: i.Owner.ID, OwnerLogin: i.Owner.Login, AccountID: tx.Account,
		Permissions: db.JSON[map[string]string]{V: i.Permissions}, Now: tx.Micros(),
	}
	if a.Permissions.V == nil {
		a.Permissions.V = map[string]string{}
	}
	if i.Suspended {
		a.SuspendedAt = &tx.Now
	}
	if _, err := install.Exec(tx, a); err != nil {
		return err
	}
	if i.Suspended {
		ended := endedData{Host: host, Owner: i.Owner.Login, Why: repo.LostSuspended}
		return endedEvent.Record(tx, event.Subject{ID: i.ID}, ended)
	}
	if there && !maps.Equal(known.Permissions.V, i.Permissions) {
		if err := Granted.Send(tx, Grant{Host: host, InstallationID: i.ID, Permissions: a.Permissions.V}); err != nil {
			return err
		}
	}
	return installedEvent.Record(tx, event.Subject{ID: i.ID},
		installedData{Host: host, Owner: i.Owner.Login, Permissions: a.Permissions.V})
}

// end records that an installation is gone.
func (s *Service) end(tx *db.Tx, host string, i codehost.Installation, why string) error {
	known, ok, err := installationByID.Maybe(tx, host, i.ID)
	if err != nil || !ok {
		return err
	}
	return tx.As(known.AccountID, func() error {
		n, err := uninstall.Exec(tx, host, i.ID, tx.Micros())
		if err != nil || n == 0 {
			return err
		}
		if err := repo.LoseAll(tx, host, i.ID, why); err != nil {
			return err
		}
		return endedEvent.Record(tx, event.Subject{ID: i.ID}, endedData{Host: host, Owner: known.OwnerLogin, Why: why})
	})
}

// errStranger says that an owner may not bring repositories into the account of the
// configuration. Whoever likes installs a public App.
var errStranger = errors.New("connection: nobody has let the owner in by name")

// errNotYet says that the account of an installation is yet to be made.
var errNotYet = errors.New("the account of the installation does not exist yet")

// account answers the account of an owner at a host. An owner without one is given a
// new account, whatever accounts there are of the same login: a name at a host proves
// nothing here.
func (s *Service) account(tx *db.Tx, host string, i codehost.Installation) (string, error) {
	account, ok, err := accountOf.Maybe(tx, host, i.Owner.ID)
	if err != nil || ok {
		return account, err
	}
	if s.Home != "" {
		if !slices.Contains(s.Owners, strings.ToLower(i.Owner.Login)) {
			return "", errStranger
		}
		if account, ok, err = people.AccountByLogin(tx, s.Home); err == nil && !ok {
			err = errNotYet
		}
		return account, err
	}
	// An account that was made first would have the login that the first user wants.
	if any, err := people.HasUsers(tx); err != nil || !any {
		return "", errors.Join(err, errNotYet)
	}
	if account, err = people.OpenAccount(tx, i.Owner.Login, s.Seats); err != nil {
		return "", err
	}
	n, err := bindFirst.Exec(tx, host, i.Owner.ID, account)
	if err == nil && n == 0 {
		err = errTwice
	}
	return account, err
}

// newerThan is the age of an installation from which it ends when its host does not list it:
// a younger one may have been made after the list.
const newerThan = time.Minute

// Reconcile reads the installations of a host, and the repositories of each, and
// applies what no delivery has told. Installations that the host does not list have ended.
// It fails with errMeanwhile if the host tells something while it is read: then what is left
// is to be read again.
func (s *Service) Reconcile(ctx context.Context, host string) error {
	feed, ok := s.Hosts.Feeds()[host]
	if !ok {
		return nil
	}
	var before []string
	var began time.Time
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		began = tx.Now
		before, err = presentBefore.All(tx, host, db.Micros(tx.Now.Add(-newerThan)))
		return err
	}); err != nil {
		return err
	}
	listed := map[string]bool{}
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := feed.Installations(ctx, cursor)
		if err != nil {
			return err
		}
		for _, i := range page {
			listed[i.ID] = true
			if err := s.reconcile(ctx, host, feed, i, began); err != nil {
				return err
			}
		}
		cursor = next
	}
	for _, id := range before {
		if listed[id] {
			continue
		}
		ended := codehost.InstallationEvent{Installation: codehost.Installation{ID: id, Gone: true}}
		if err := s.apply(ctx, host, ended, began); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) reconcile(ctx context.Context, host string, feed codehost.Feed, i codehost.Installation, began time.Time) error {
	e := codehost.InstallationEvent{Installation: i}
	for cursor, more := "", !i.Suspended; more; more = cursor != "" {
		page, next, err := feed.InstalledRepos(ctx, i.ID, cursor)
		if err != nil {
			return err
		}
		e.Added, cursor = append(e.Added, page...), next
	}
	return s.apply(ctx, host, e, began)
}
