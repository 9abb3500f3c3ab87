package app

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/github"
	"yardmaster/internal/codehost/pace"
	"yardmaster/internal/codehost/relay"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/hostlimit"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/sso"
	"yardmaster/internal/fault"
	"yardmaster/internal/flow"
	"yardmaster/internal/lazy"
)

// githubs makes connections to github.com and to GitHub Enterprise Servers. It
// implements connection.Maker.
type githubs struct{ a *App }

// githubPrefix begins the names of hosts that are a GitHub.
const githubPrefix = "github:"

// Name implements connection.Maker. Plain http is for this machine alone.
func (githubs) Name(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !private(u.Hostname())) {
		return "", fault.Field("address", "must be https://github.com, or the https address of a GitHub Enterprise Server")
	}
	return githubPrefix + strings.ToLower(u.Host), nil
}

// Judge implements connection.Maker. It judges where the address leads at the set-up.
func (g githubs) Judge(ctx context.Context, address string) error {
	if address == g.a.cfg.GitHubURL && (g.a.cfg.GitHub() || g.a.cfg.AirGapped != "on") {
		return nil
	}
	if _, wrong := g.a.hostGuard().Destination(ctx, address); wrong != "" {
		return fault.Field("address", wrong)
	}
	return nil
}

// roads carries requests to code hosts: to that of the configuration by whatever way the
// machine has, and to those of a set-up only where the guard allows it. Where the
// environment names a proxy, the guard judges the address of that alone, and the proxy
// judges where it leads. Git's own connections are none of these: it finds the address of a
// name by itself, and uses no proxy. It implements http.RoundTripper.
type roads struct {
	configured     map[string]bool // hosts of the configuration's GitHub
	open, guarding http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r roads) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.configured[req.URL.Host] {
		return r.open.RoundTrip(req)
	}
	return r.guarding.RoundTrip(req)
}

// hostRoads makes the roads to code hosts.
func (a *App) hostRoads() http.RoundTripper {
	open := http.DefaultTransport
	proxy := http.ProxyFromEnvironment
	if a.cfg.AirGapped == "on" {
		proxy = nil
	}
	guarding := &http.Transport{
		Proxy: proxy, DialContext: a.hostGuard().Dialer(30 * time.Second).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
	}
	configured := map[string]bool{}
	at := addresses(a.cfg.GitHubURL)
	for _, text := range []string{at.Web, at.API} {
		if u, err := url.Parse(text); err == nil && (a.cfg.GitHub() || a.cfg.AirGapped != "on") {
			configured[u.Host] = true
		}
	}
	return roads{configured, open, guarding}
}

// addresses are the parts of the GitHub at an address.
func addresses(address string) github.Addresses {
	if u, err := url.Parse(address); err == nil && u.Scheme == "https" {
		return github.At(strings.ToLower(u.Host))
	}
	return github.AtServer(address)
}

// private tells whether a host name cannot be reached from outside.
func private(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || !strings.Contains(host, ".") && !strings.Contains(host, ":") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified())
}

// Permissions implements connection.Maker.
func (githubs) Permissions() (all []connection.Permission) {
	for _, p := range github.Needed {
		shown := connection.Permission{Name: p.Name + ": " + p.Level, Why: p.Why, Without: p.Without}
		if p.Switch {
			shown.Switch = p.Name
		}
		all = append(all, shown)
	}
	return all
}

var appName = lazy.New(`[^A-Za-z0-9-]+`)

// Hidden implements connection.Maker.
func (g githubs) Hidden() string {
	if base, err := url.Parse(g.a.base); err == nil && !private(base.Hostname()) {
		return ""
	}
	return g.a.base
}

// Form implements connection.Maker.
func (g githubs) Form(address, organisation, state string, s connection.Switches) (action, manifest string, err error) {
	base, err := url.Parse(g.a.base)
	if err != nil {
		return "", "", err
	}
	hook := g.a.base + "/v1/inbound/github"
	switch at, err := url.Parse(address); {
	case s.NoWebhook:
		hook = ""
	case err == nil && private(base.Hostname()) && !private(at.Hostname()):
		return "", "", fault.Field("nowebhook", "must be on: "+g.a.base+" cannot be reached from "+at.Host+
			", so nothing can be delivered there. Tick \"GitHub cannot reach this server\", or set base-url to an address that can be reached")
	}
	text, err := github.Manifest(github.AppOptions{
		Name: strings.Trim(appName.ReplaceAllString("yardmaster-"+base.Hostname(), "-"), "-"), URL: g.a.base, HookURL: hook,
		RedirectURL: g.a.base + "/gh/created", SetupURL: g.a.base + "/gh/installed",
		Workflows: s.Workflows, Administration: s.Administration,
	})
	return github.AppAddress(addresses(address), organisation, state), string(text), err
}

// Convert implements connection.Maker.
func (g githubs) Convert(ctx context.Context, address, code string) (connection.App, error) {
	c, err := github.Convert(ctx, addresses(address), g.a.roads, code)
	if err != nil {
		return connection.App{}, err
	}
	return connection.App{
		ID: strconv.FormatInt(c.AppID, 10), Slug: c.Slug, ClientID: c.ClientID,
		OwnerID: strconv.FormatInt(c.Owner.ID, 10), OwnerLogin: c.Owner.Login,
		Secrets: connection.Secrets{Key: c.Key, ClientSecret: c.ClientSecret, WebhookSecret: c.WebhookSecret},
	}, nil
}

// InstallAddress implements connection.Maker.
func (githubs) InstallAddress(address string, a connection.App) string {
	web := addresses(address).Web
	if web == "https://github.com" {
		return web + "/apps/" + url.PathEscape(a.Slug) + "/installations/new"
	}
	return web + "/github-apps/" + url.PathEscape(a.Slug) + "/installations/new"
}

// Connect implements connection.Maker.
// mirrorsOf is the folder with the copies of repositories of a code host.
func mirrorsOf(data, host string) string {
	return filepath.Join(data, "mirrors", strings.ReplaceAll(host, ":", "_"))
}

func (g githubs) Connect(name, address string, a connection.App, s connection.Switches) (codehost.Sides, error) {
	id, err := strconv.ParseInt(a.ID, 10, 64)
	if err != nil {
		return codehost.Sides{}, errors.New("the id of the App is no number")
	}
	var secrets []string
	for _, s := range []string{a.WebhookSecret, a.WebhookBefore} {
		if s != "" {
			secrets = append(secrets, s)
		}
	}
	h, err := github.New(github.Config{
		Name: name, Addresses: addresses(address), AppID: id, Slug: a.Slug, Key: []byte(a.Key), Secrets: secrets,
		Workflows: s.Workflows, Administration: s.Administration,
		Folder:    mirrorsOf(g.a.cfg.Data, name),
		CloneURL:  func(r codehost.Repo) string { return g.a.base + relay.Path(relayID(r)) },
		Transport: g.a.roads, Now: g.a.clock, Logger: g.a.log,
		Limits: hostlimit.New(hostlimit.Needs{DB: g.a.db, Logger: g.a.log, Waiter: pace.Timer{}}).Of(name),
	})
	if err != nil {
		return codehost.Sides{}, err
	}
	return h.Sides(), nil
}

// persons tells who people at code hosts are: those who sign in with a GitHub have the
// same id at the host of that address.
func (a *App) persons() flow.HostPersons {
	p := flow.HostPersons{Issuers: map[string]string{}}
	if name, err := (githubs{a}).Name(a.cfg.GitHubURL); err == nil && a.cfg.GitHubID != "" {
		p.Issuers[name] = sso.GitHubIssuer(a.cfg.GitHubURL)
	}
	return p
}

// hostNames are what people call the server by in comments. It is command.Names.
type hostNames struct{ a *App }

// At are the names at a host.
func (n hostNames) At(host string) (all []string) {
	for _, n := range []string{n.a.hosts.Called(host), strings.TrimPrefix(n.a.cfg.CommandName, "@")} {
		if n != "" {
			all = append(all, n)
		}
	}
	return all
}

// relayID names a repository in an address of the relay, by its host and its id there.
func relayID(r codehost.Repo) string { return r.Host + "=" + r.ID }

// elsewhere is the door through which git clients reach repositories at other hosts.
func (a *App) elsewhere() http.Handler {
	repos := a.parts.repo
	return relay.New(relay.Config{
		Find: func(ctx context.Context, id string) (codehost.Repo, error) {
			host, hostID, ok := strings.Cut(id, "=")
			var found repo.Ref
			err := a.db.Read(ctx, func(tx *db.Tx) (err error) {
				if ok && hostID != "" {
					found, ok, err = repo.At(tx, codehost.Repo{Host: host, ID: hostID})
				}
				return err
			})
			if err == nil && (!ok || hostID == "") {
				err = fault.Missing("repository")
			}
			return found.HostRepo(), err
		},
		Git: func(ctx context.Context, r codehost.Repo, access codehost.Access) (codehost.GitAccess, error) {
			git, err := a.hosts.Git(r)
			if err != nil || git == nil {
				return nil, err
			}
			return a.parts.tokens.Drive(ctx, a.grants(a.parts).Watch(git), r, access)
		},
		Authorize: a.gitAccess, Pushed: repos.Pushed, Transport: a.roads,
		Objects: &relay.Objects{BaseURL: a.base, Seal: a.ring, Signed: objectDoor{a}.Signed, Now: a.now},
	})
}

// grants follows the permissions of the App.
func (a *App) grants(p parts) flow.Grants {
	return flow.Grants{DB: a.db, Hub: a.hub, Connections: p.hosts, Logger: a.log}
}

// configuredHost connects the App that the configuration names, if it names one.
func (a *App) configuredHost() error {
	c := a.cfg
	if c.GitHubApp == "" {
		return nil
	}
	key, err := os.ReadFile(c.GitHubAppKey)
	if err != nil {
		return err
	}
	g := githubs{a}
	name, err := g.Name(c.GitHubURL)
	if err != nil {
		return err
	}
	sides, err := g.Connect(name, c.GitHubURL, connection.App{
		ID: c.GitHubApp, Slug: c.GitHubAppSlug, Secrets: connection.Secrets{Key: string(key), WebhookSecret: c.GitHubAppHook},
	}, connection.Switches{Administration: true}) // each installation says whether it is granted
	if err == nil {
		a.hosts.Set(name, sides)
	}
	return err
}
