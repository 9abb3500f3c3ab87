package github

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// addAccount makes an account, or returns the one of that name.
func (s *Server) addAccount(login, kind string) *Account {
	key := strings.ToLower(login)
	if a := s.accounts[key]; a != nil {
		return a
	}
	a := &Account{ID: s.next(), Login: login, Kind: kind, s: s, members: map[int64]string{}, private: map[int64]bool{}}
	s.accounts[key] = a
	return a
}

// Person returns a person, and makes them if there is none of that name.
func (s *Server) Person(login string) *Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addAccount(login, "User")
}

// Bot returns the account of a bot that is no App here, such as dependabot[bot].
func (s *Server) Bot(login string) *Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addAccount(login, "Bot")
}

// Org returns an organisation, and makes it if there is none of that name.
func (s *Server) Org(login string) *Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addAccount(login, "Organization")
}

// Join makes a person a member of an organisation: "member" or "admin". A private
// membership is not shown: the person's association with pull requests says NONE or
// CONTRIBUTOR.
func (a *Account) Join(org *Account, role string, private bool) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	org.members[a.ID], org.private[a.ID] = role, private
}

// Rename gives a person or organisation another name. The old names of repositories
// redirect.
func (a *Account) Rename(login string) {
	s := a.s
	s.mu.Lock()
	defer s.mu.Unlock()
	from := a.Login
	for _, r := range s.repos {
		if r.owner == a {
			s.moved[strings.ToLower(r.full())] = r.ID
		}
	}
	delete(s.accounts, strings.ToLower(from))
	a.Login = login
	s.accounts[strings.ToLower(login)] = a
	for _, n := range slices.Sorted(maps.Keys(s.installs)) {
		if i := s.installs[n]; i.Account == a && !i.removed {
			account := s.showOrganization(a)
			if a.Kind == "User" {
				account = s.showUser(a)
			}
			account["html_url"] = s.Web + "/" + login
			s.notify(i.App, i, nil, "installation_target", "renamed", obj{
				"account": account, "changes": obj{"login": obj{"from": from}}, "target_type": a.Kind,
				"installation": obj{"id": i.ID, "node_id": nodeID("INS", i.ID)}, "sender": s.showUser(s.boss(a)),
			})
		}
	}
}

// NewApp is what an App is registered with.
type NewApp struct {
	Name        string
	Owner       *Account // nil: an organisation "app-makers"
	Permissions map[string]string
	Events      []string
	HookURL     string // empty: there are no deliveries
	Secret      string // of deliveries; empty: one is made up
}

// NewApp registers an App by hand.
func (s *Server) NewApp(n NewApp) *App {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.Owner == nil {
		n.Owner = s.addAccount("app-makers", "Organization")
	}
	m := manifest{Name: n.Name, URL: "https://example.com/", DefaultEvents: n.Events, DefaultPermissions: n.Permissions, Public: true}
	m.HookAttributes.URL = n.HookURL
	a := s.addApp(n.Owner, m)
	if n.Secret != "" {
		a.secret = n.Secret
	}
	return a
}

// AppByID returns an App that was registered, or nil.
func (s *Server) AppByID(n int64) *App {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apps[n]
}

// Redirect is the address to which a browser goes after an installation of the App:
// its setup address with the installation's id.
func (a *App) Redirect(i *Installation, action string) string {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	if a.setupURL == "" {
		return ""
	}
	return fmt.Sprintf("%s?installation_id=%d&setup_action=%s", a.setupURL, i.ID, action)
}

// Rotate gives the App another secret for deliveries.
func (a *App) Rotate(secret string) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.secret = secret
}

// Ask changes what the App asks for. Installations keep what they have accepted until
// Accept.
func (a *App) Ask(permissions map[string]string, events []string) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.permissions, a.events = maps.Clone(permissions), slices.Clone(events)
	a.permissions["metadata"] = "read"
}

// Install installs the App in an account, for some repositories or for all.
func (a *App) Install(into *Account, repos ...*Repo) *Installation {
	s := a.s
	s.mu.Lock()
	defer s.mu.Unlock()
	i := &Installation{
		ID: s.next(), App: a, Account: into, s: s, permissions: maps.Clone(a.permissions), events: slices.Clone(a.events),
		all: len(repos) == 0, repos: map[int64]bool{}, created: s.seconds(), updated: s.seconds(),
	}
	for _, r := range repos {
		i.repos[r.ID] = true
	}
	s.installs[i.ID] = i
	s.tellInstallation(i, "created", s.boss(into), obj{"repositories": s.briefly(i), "requester": nil})
	return i
}

// boss is the person who acts for an account.
func (s *Server) boss(a *Account) *Account {
	if a.Kind == "User" {
		return a
	}
	for _, n := range slices.Sorted(maps.Keys(s.accounts)) {
		if p := s.accounts[n]; a.members[p.ID] == "admin" {
			return p
		}
	}
	return a
}

// briefly lists the repositories of an installation as its events do.
func (s *Server) briefly(i *Installation) []obj {
	out := []obj{}
	for _, n := range slices.Sorted(maps.Keys(s.repos)) {
		if r := s.repos[n]; i.has(r) {
			out = append(out, brief(r))
		}
	}
	return out
}

func brief(r *Repo) obj {
	return obj{"id": r.ID, "node_id": nodeID("R", r.ID), "name": r.name, "full_name": r.full(), "private": r.private}
}

// tellInstallation sends an event about an installation. It cannot be unsubscribed.
func (s *Server) tellInstallation(i *Installation, action string, sender *Account, payload obj) {
	event := "installation"
	if action == "added" || action == "removed" {
		event = "installation_repositories"
	}
	payload["installation"], payload["sender"] = s.showInstallation(i), s.showUser(sender)
	s.notify(i.App, i, nil, event, action, payload)
}

// Suspend suspends the installation, or ends that.
func (i *Installation) Suspend(by *Account, suspended bool) {
	s := i.s
	s.mu.Lock()
	defer s.mu.Unlock()
	i.updated = s.seconds()
	if suspended {
		i.suspended, i.suspendedBy = s.seconds(), by
		s.tellInstallation(i, "suspend", by, obj{"repositories": s.briefly(i)})
		return
	}
	i.suspended, i.suspendedBy = time.Time{}, nil
	s.tellInstallation(i, "unsuspend", by, obj{"repositories": s.briefly(i)})
}

// Remove uninstalls the App from the account. Its tokens are void at once.
func (i *Installation) Remove(by *Account) {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	i.s.uninstall(i, by)
}

func (s *Server) uninstall(i *Installation, by *Account) {
	s.tellInstallation(i, "deleted", by, obj{"repositories": s.briefly(i)})
	i.removed = true
}

// Accept accepts all that the App asks for now.
func (i *Installation) Accept(by *Account) {
	s := i.s
	s.mu.Lock()
	defer s.mu.Unlock()
	i.permissions, i.events, i.updated = maps.Clone(i.App.permissions), slices.Clone(i.App.events), s.seconds()
	s.tellInstallation(i, "new_permissions_accepted", by, obj{"repositories": s.briefly(i)})
}

// Add includes repositories in an installation of selected ones.
func (i *Installation) Add(by *Account, repos ...*Repo) { i.change(by, "added", repos) }

// Drop takes repositories out of an installation of selected ones.
func (i *Installation) Drop(by *Account, repos ...*Repo) { i.change(by, "removed", repos) }

func (i *Installation) change(by *Account, action string, repos []*Repo) {
	s := i.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range repos {
		if action == "added" {
			i.repos[r.ID] = true
		} else {
			delete(i.repos, r.ID)
		}
	}
	payload := obj{"repositories_added": []obj{}, "repositories_removed": []obj{}, "repository_selection": "selected", "requester": nil}
	payload["repositories_"+action] = each(repos, brief)
	s.tellInstallation(i, action, by, payload)
}

// Token mints a token of the installation with all that it has, for calls of a test
// itself.
func (i *Installation) Token() string {
	i.s.mu.Lock()
	defer i.s.mu.Unlock()
	return i.s.mint(i, maps.Clone(i.permissions), nil).text
}

// again sends a delivery anew, signed with the secret of now.
func (s *Server) again(d *sent) {
	next := &sent{
		id: s.next(), guid: d.guid, app: d.app, event: d.event, action: d.action, inst: d.inst, repo: d.repo, at: s.now(),
		again: true, payload: d.payload, header: d.header.Clone(), status: "pending",
	}
	next.header.Set("X-Hub-Signature", sign(sha1.New, "sha1=", d.app.secret, d.payload))
	next.header.Set("X-Hub-Signature-256", sign(sha256.New, "sha256=", d.app.secret, d.payload))
	d.app.deliveries = append(d.app.deliveries, next)
	s.post.add(next, d.app.hookURL)
}

// Delivery is an attempt to deliver, as a test sees it.
type Delivery struct {
	ID         int64
	GUID       string
	Event      string
	Action     string
	Status     string
	Code       int
	Redelivery bool
	Payload    json.RawMessage
}

// Deliveries lists the attempts to deliver to the App, oldest first.
func (a *App) Deliveries() []Delivery {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return each(a.deliveries, func(d *sent) Delivery {
		return Delivery{d.id, d.guid, d.event, d.action, d.status, d.code, d.again, d.payload}
	})
}

// NewRepo is what a repository is made with.
type NewRepo struct {
	Private     bool
	Description string
	Branch      string            // the default branch; empty: main
	Files       map[string]string // of the first commit; none: the repository is empty
	Fork        *Repo             // what it is forked from, with all its branches
}

// Repo makes a repository, and its owner if there is none: an organisation.
func (s *Server) Repo(full string, n NewRepo) *Repo {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner, name, _ := strings.Cut(full, "/")
	return s.addRepo(s.addAccount(owner, "Organization"), name, n)
}

func (s *Server) addRepo(owner *Account, name string, n NewRepo) *Repo {
	if s.byName(owner.Login+"/"+name) != nil {
		panic(fmt.Sprintf("there is a repository %s/%s", owner.Login, name))
	}
	r := &Repo{
		ID: s.next(), s: s, owner: owner, name: name, private: n.Private, description: n.Description, fork: n.Fork, branch: n.Branch,
		created: s.seconds(), updated: s.seconds(),
		roles: map[int64]string{}, issues: map[int]*Issue{}, comments: map[int64]*comment{}, checks: map[int64]*CheckRun{},
		runs: map[int64]*Run{}, jobs: map[int64]*Job{}, protections: map[string]*Protection{}, queue: map[string]*queue{},
		methods: map[string]bool{"merge": true, "squash": true, "rebase": true}, answers: map[string]gitAnswer{},
	}
	if r.branch == "" {
		r.branch = "main"
	}
	for _, l := range []label{{name: "bug", color: "d73a4a"}, {name: "enhancement", color: "a2eeef"}} {
		l.id = s.next()
		r.labels = append(r.labels, &l)
	}
	r.dir = filepath.Join(s.dir, fmt.Sprintf("%d.git", r.ID))
	r.initialise()
	if n.Fork != nil {
		r.branch = n.Fork.branch
		r.must("fetch", "--quiet", n.Fork.dir, "refs/heads/*:refs/heads/*")
		r.must("symbolic-ref", "HEAD", "refs/heads/"+r.branch)
		r.pushed = s.seconds()
	}
	if len(n.Files) > 0 {
		files := map[string]*string{}
		for path, text := range n.Files {
			files[path] = &text
		}
		by := signature{owner.Login, owner.mail(), s.seconds()}
		if err := r.setRef("refs/heads/"+r.branch, r.commitFiles("", "The first files", files, by), zero); err != nil {
			panic(err)
		}
		r.pushed = s.seconds()
	}
	delete(s.moved, strings.ToLower(r.full()))
	s.repos[r.ID] = r
	return r
}
