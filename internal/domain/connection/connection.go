// Package connection is the connections of the server to code hosts: the App that the
// server is there, and the installations of that App. An installation is the only way
// in which repositories of another host come to be known.
//
//   - connection.go: App, Makers, the hosts that are connected
//   - installation.go: what a host tells of installations
//   - setup.go, page.go: how an App is made
//   - ops.go, store.go, events.go
package connection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
	"yardmaster/internal/observe"
	"yardmaster/internal/seal"
)

// App is what the server is at a code host.
type App struct {
	ID, Slug, ClientID  string
	OwnerID, OwnerLogin string // of the App
	Secrets
}

// Secrets are the credentials of an App.
type Secrets struct {
	Key           string // private, in PEM
	ClientSecret  string
	WebhookSecret string
	WebhookBefore string // good while the secret is being replaced; "": none
}

// Switches are the permissions of an App that are not asked for by default.
type Switches struct {
	_              struct{} `doc:"What was asked for besides, when the App was made." schema:"CodeHostSwitches"`
	Workflows      bool     `json:"workflows" doc:"to push and merge what the host itself runs"`
	Administration bool     `json:"administration" doc:"to make repositories, and to be told of rules that change"`
	NoWebhook      bool     `json:"nowebhook" doc:"the host cannot reach the server: nothing is delivered, and sweeps find what happens"`
}

// Permission is a permission of an App, as the page of the set-up explains it.
type Permission struct {
	Name    string // as the host calls it, such as "contents: write"
	Why     string // what the server does with it
	Without string // what does not work without it
	Switch  string // name of the switch that adds it; "": always
}

// Maker makes Apps of one kind of code host, and connections from them.
type Maker interface {
	// Name is the name of a host by its address. It fails with fault.Invalid.
	Name(address string) (string, error)
	// Judge fails with fault.Invalid for an address that the server may not connect to.
	Judge(ctx context.Context, address string) error
	// Permissions are what an App asks for.
	Permissions() []Permission
	// Hidden is the address of this server if it cannot be reached from outside, else "".
	Hidden() string
	// Form is the form that has a person make an App: its address, and the value of
	// its one field manifest. It fails with fault.Invalid if the host could not reach
	// this server.
	Form(address, organisation, state string, s Switches) (action, manifest string, err error)
	// Convert exchanges the code that the host sent back for the App, once.
	Convert(ctx context.Context, address, code string) (App, error)
	// Connect makes the connection of an App.
	Connect(name, address string, a App, s Switches) (codehost.Sides, error)
	// InstallAddress is the page on which an owner installs the App.
	InstallAddress(address string, a App) string
}

// Told knows what hosts have told.
type Told interface {
	// Since tells whether a host has told, at a time or later, of installations, of what
	// repositories they have, or of how a repository is. It returns the error of the database.
	Since(tx *db.Tx, host string, at time.Time) (bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Ring   *seal.Keyring
	Hosts  *codehost.Hosts
	Maker  Maker
	Logger *slog.Logger
	Seats  int    // of an account that an installation makes
	Home   string // login of the account of installations by owners that no set-up names; "": each is given one
	// Owners are the logins, in lower case, of the owners whose installations come into Home.
	Owners []string
	Told   Told
}

// Service makes the connections to code hosts.
type Service struct {
	Needs
	connected map[string]string // by name, what they were made of; of Loop's goroutine
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	if n.Home != "" && len(n.Owners) == 0 {
		n.Logger.Warn("github-app-account is set, and github-app-owners lets nobody's new installations into it",
			slog.String("account", n.Home))
	}
	return &Service{Needs: n, connected: map[string]string{}}
}

const (
	connectTopic = "connections"
	connectEvery = 30 * time.Second
	readEvery    = time.Hour
	keepEvery    = 24 * time.Hour
	unusedFor    = 30 * 24 * time.Hour // after which the mirror of a repository is removed
)

// Loop connects the hosts that set-ups have stored, on every node, until ctx ends. It
// reads the installations of a host once that is connected, and every hour: an App may
// have been installed before, and a delivery be lost. Once a day the mirrors of the hosts
// are looked after.
func (s *Service) Loop(ctx context.Context) error {
	var kept time.Time
	read := map[string]time.Time{} // by host, when its installations were read
	s.Hub.Sweep(ctx, "connections.sweep", connectTopic, connectEvery, func(ctx context.Context) {
		if err := s.Connect(ctx); err != nil {
			observe.Complain(ctx, s.Logger, "connect the code hosts", err)
		}
		var now time.Time
		if err := s.DB.Read(ctx, func(tx *db.Tx) error { now = tx.Now; return nil }); err != nil {
			return
		}
		for host := range s.Hosts.Feeds() {
			if now.Sub(read[host]) < readEvery {
				continue
			}
			err := s.Reconcile(ctx, host)
			if errors.Is(err, errNotYet) || errors.Is(err, errMeanwhile) {
				continue // it is read again soon
			}
			if err != nil {
				observe.Complain(ctx, s.Logger, "read the installations at "+host, err)
				continue
			}
			read[host] = now
		}
		if kept.IsZero() {
			kept = now // a start is a bad moment to pack
		}
		if now.Sub(kept) < keepEvery {
			return
		}
		kept = now
		for _, k := range s.Hosts.Keepers() {
			if err := k.Upkeep(ctx, now, now.Add(-unusedFor)); err != nil {
				observe.Complain(ctx, s.Logger, "look after the mirrors of a code host", err)
			}
		}
	})
	return nil
}

// Connect connects the hosts that are stored, and have changed since the last call. It
// must not be called by two goroutines at once.
func (s *Service) Connect(ctx context.Context) error {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = all.All(tx)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if s.connected[r.Name] == r.Sealed {
			continue
		}
		a, err := s.open(r)
		if err != nil {
			return err
		}
		var sw Switches
		if err := json.Unmarshal([]byte(r.Switches), &sw); err != nil {
			return err
		}
		sides, err := s.Maker.Connect(r.Name, r.Address, a, sw)
		if err != nil {
			return fmt.Errorf("connect %s: %w", r.Name, err)
		}
		s.Hosts.Set(r.Name, sides)
		s.connected[r.Name] = r.Sealed
		s.Logger.InfoContext(ctx, "connected a code host", slog.String("host", r.Name), slog.String("app", a.Slug))
	}
	return nil
}

// open opens the credentials of an App.
func (s *Service) open(r row) (App, error) {
	a := App{ID: r.AppID, Slug: r.Slug, ClientID: r.ClientID, OwnerID: r.OwnerID, OwnerLogin: r.OwnerLogin}
	text, err := s.Ring.Unseal(purpose(r.Name), r.Sealed)
	if err == nil {
		err = json.Unmarshal(text, &a.Secrets)
	}
	if err != nil {
		return a, fmt.Errorf("open the credentials of %s: %w", r.Name, err)
	}
	return a, nil
}

// purpose is the purpose for which the credentials of an App are sealed.
func purpose(name string) string { return "code-host/" + name }

// Add stores the App of a host, and connects the host on every node. The owner of the
// App belongs to the account. An App that was stored before is replaced.
func (s *Service) Add(tx *db.Tx, name, address, account string, a App, sw Switches) error {
	text, err := json.Marshal(a.Secrets)
	if err != nil {
		return err
	}
	switches, err := json.Marshal(sw)
	if err != nil {
		return err
	}
	if _, err := put.Exec(tx, putArgs{
		Name: name, Address: address, AppID: a.ID, Slug: a.Slug, ClientID: a.ClientID, OwnerID: a.OwnerID, OwnerLogin: a.OwnerLogin,
		AccountID: account, Switches: string(switches), Sealed: s.Ring.Seal(purpose(name), text), CreatedAt: tx.Micros(), CreatedBy: by(tx),
	}); err != nil {
		return err
	}
	if _, err := bind.Exec(tx, name, a.OwnerID, account); err != nil {
		return err
	}
	s.Hub.Notify(tx, connectTopic)
	return connectedEvent.Record(tx, event.Subject{ID: name}, connectedData{App: a.Slug, Host: name, Owner: a.OwnerLogin})
}
