package github

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/id"
)

// keys are made once in a process, because each takes a while. An App has one of them
// by its id.
var keys = sync.OnceValue(func() (out [2]*rsa.PrivateKey) {
	for i := range out {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		out[i] = key
	}
	return out
})

// PEM is the App's private key as GitHub hands it out, in PKCS #1.
func (a *App) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(a.key)}))
}

// Secret is the secret of the App's deliveries.
func (a *App) Secret() string {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	return a.secret
}

// manifest is what a program asks to be made an App of, by the page "Registering a
// GitHub App from a manifest".
type manifest struct {
	Name           string `json:"name"`
	URL            string `json:"url"`
	HookAttributes struct {
		URL    string `json:"url"`
		Active *bool  `json:"active"`
	} `json:"hook_attributes"`
	RedirectURL        string            `json:"redirect_url"`
	CallbackURLs       []string          `json:"callback_urls"`
	SetupURL           string            `json:"setup_url"`
	SetupOnUpdate      bool              `json:"setup_on_update"`
	Description        string            `json:"description"`
	Public             bool              `json:"public"`
	DefaultEvents      []string          `json:"default_events"`
	DefaultPermissions map[string]string `json:"default_permissions"`
}

// problem says what is wrong with a manifest, or "".
func (m manifest) problem() string {
	switch {
	case m.URL == "":
		return "url is missing"
	case m.HookAttributes.URL == "" && len(m.DefaultEvents) > 0:
		return "hook_attributes needs an url"
	case len(m.CallbackURLs) > 10:
		return "there may be 10 callback_urls"
	case len(m.Name) > 34:
		return "name may have 34 characters"
	}
	for name, level := range m.DefaultPermissions {
		if level != "read" && level != "write" && level != "admin" {
			return "default_permissions " + name + " is " + level
		}
	}
	for _, e := range m.DefaultEvents {
		if need := permissionFor[e]; need != "" && need != "metadata" && m.DefaultPermissions[need] == "" {
			return "Default events are not supported by permissions: " + e
		}
	}
	return ""
}

// Confirm registers an App as a person does on the page of a manifest. Path is that of
// the form: /settings/apps/new for the first person there is, or
// /organizations/{org}/settings/apps/new. It returns the address to which the browser
// goes, with a code and the state.
func (s *Server) Confirm(path, state, text string) (string, error) {
	var m manifest
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return "", fmt.Errorf("the manifest is not valid: %w", err)
	}
	if p := m.problem(); p != "" {
		return "", fmt.Errorf("the manifest is not valid: %s", p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var owner *Account
	if org, ok := strings.CutPrefix(path, "/organizations/"); ok {
		org, _, _ = strings.Cut(org, "/")
		owner = s.accounts[strings.ToLower(org)]
	} else {
		for _, name := range slices.Sorted(maps.Keys(s.accounts)) {
			if s.accounts[name].Kind == "User" {
				owner = s.accounts[name]
				break
			}
		}
	}
	if owner == nil {
		return "", fmt.Errorf("nobody owns %s", path)
	}
	for _, other := range s.apps {
		if other.name == m.Name {
			return "", fmt.Errorf("the manifest is not valid: the name %s is taken", m.Name)
		}
	}
	a := s.addApp(owner, m)
	code := id.Opaque()
	s.codes[code] = a
	to, err := url.Parse(m.RedirectURL)
	if err != nil {
		return "", fmt.Errorf("the manifest is not valid: redirect_url: %w", err)
	}
	q := to.Query()
	q.Set("code", code)
	if state != "" {
		q.Set("state", state)
	}
	to.RawQuery = q.Encode()
	return to.String(), nil
}

// addApp makes an App.
func (s *Server) addApp(owner *Account, m manifest) *App {
	slug := strings.Trim(strings.ToLower(strings.Join(strings.Fields(m.Name), "-")), "-")
	a := &App{
		ID: s.next(), s: s, Slug: slug, Owner: owner, name: m.Name, description: m.Description, url: m.URL,
		ClientID: "Iv23" + id.Opaque()[:16], clientSecret: id.Opaque(), secret: id.Opaque(),
		hookURL: m.HookAttributes.URL, active: m.HookAttributes.Active == nil || *m.HookAttributes.Active,
		permissions: maps.Clone(m.DefaultPermissions), events: slices.Clone(m.DefaultEvents), created: s.seconds(),
		public: m.Public, callback: m.CallbackURLs, setupURL: m.SetupURL, setupOnUpdate: m.SetupOnUpdate,
	}
	if a.permissions == nil {
		a.permissions = map[string]string{}
	}
	a.permissions["metadata"] = "read"
	a.key = keys()[a.ID%2]
	a.Bot = s.addAccount(slug+"[bot]", "Bot")
	s.apps[a.ID] = a
	return a
}

// convert answers the credentials of a new App, once and within an hour.
func (c *call) convert() (int, any) {
	a := c.codes[c.params["code"]]
	delete(c.codes, c.params["code"])
	if a == nil || c.now().Sub(a.created) > time.Hour {
		c.notFound()
	}
	o := c.appObject(a)
	o["client_secret"], o["webhook_secret"], o["pem"] = a.clientSecret, a.secret, a.PEM()
	return http.StatusCreated, o
}

// appObject is GitHub's "integration".
func (s *Server) appObject(a *App) obj {
	return obj{
		"id": a.ID, "slug": a.Slug, "node_id": nodeID("A", a.ID), "client_id": a.ClientID, "owner": s.showUser(a.Owner),
		"name": a.name, "description": null(a.description), "external_url": a.url, "html_url": s.Web + "/" + s.appsPath() + "/" + a.Slug,
		"created_at": stamp(a.created), "updated_at": stamp(a.created), "permissions": a.permissions, "events": orEmpty(a.events),
	}
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

func (c *call) showApp() (int, any) {
	o := c.appObject(c.who.app)
	n := 0
	for _, i := range c.installs {
		if i.App == c.who.app && !i.removed {
			n++
		}
	}
	o["installations_count"] = n
	return http.StatusOK, o
}

// showInstallation is GitHub's "installation".
func (s *Server) showInstallation(i *Installation) obj {
	selection := "selected"
	if i.all {
		selection = "all"
	}
	at := fmt.Sprintf("%s/app/installations/%d", s.API, i.ID)
	return obj{
		"id": i.ID, "client_id": i.App.ClientID, "account": s.showUser(i.Account), "repository_selection": selection,
		"access_tokens_url": at + "/access_tokens", "repositories_url": s.API + "/installation/repositories",
		"html_url": fmt.Sprintf("%s/settings/installations/%d", s.Web, i.ID), "app_id": i.App.ID, "app_slug": i.App.Slug,
		"target_id": i.Account.ID, "target_type": i.Account.Kind, "permissions": i.permissions, "events": orEmpty(i.events),
		"created_at": stamp(i.created), "updated_at": stamp(i.updated), "single_file_name": nil,
		"has_multiple_single_files": false, "single_file_paths": []string{},
		"suspended_by": s.userOrNull(i.suspendedBy), "suspended_at": stamp(i.suspended),
	}
}

func (c *call) listInstallations() (int, any) {
	var all []*Installation
	for _, n := range slices.Sorted(maps.Keys(c.installs)) {
		if i := c.installs[n]; i.App == c.who.app && !i.removed {
			all = append(all, i)
		}
	}
	return http.StatusOK, each(list(c, all), c.showInstallation)
}

// installation is the one of the path, if the calling App has it.
func (c *call) installation() *Installation {
	i := c.installs[c.number("installation_id")]
	if i == nil || i.App != c.who.app || i.removed {
		c.notFound()
	}
	return i
}

func (c *call) getInstallation() (int, any) {
	return http.StatusOK, c.showInstallation(c.installation())
}

func (c *call) deleteInstallation() (int, any) {
	c.uninstall(c.installation(), c.who.app.Bot)
	return http.StatusNoContent, nil
}

func (c *call) repoInstallation() (int, any) {
	full := c.params["owner"] + "/" + c.params["repo"]
	r := c.byName(full)
	if now := c.repos[c.moved[strings.ToLower(full)]]; r == nil && now != nil {
		c.redirect(now)
	}
	for _, n := range slices.Sorted(maps.Keys(c.installs)) {
		if i := c.installs[n]; r != nil && i.App == c.who.app && i.has(r) {
			return http.StatusOK, c.showInstallation(i)
		}
	}
	c.notFound()
	return 0, nil
}

// createToken mints a token, narrowed to repositories and permissions. It cannot be
// widened: what the installation lacks is refused.
func (c *call) createToken() (int, any) {
	i := c.installation()
	if !i.suspended.IsZero() {
		c.refuse(http.StatusForbidden, "This installation has been suspended")
	}
	var in struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	c.in(&in)
	if len(in.Repositories)+len(in.RepositoryIDs) > 500 {
		c.refuse(http.StatusUnprocessableEntity, "Too many repositories: 500 may be named.")
	}
	var only map[int64]bool
	var named []*Repo
	for _, name := range in.Repositories {
		if r := c.byName(i.Account.Login + "/" + name); r != nil {
			in.RepositoryIDs = append(in.RepositoryIDs, r.ID)
		} else {
			in.RepositoryIDs = append(in.RepositoryIDs, -1)
		}
	}
	for _, n := range in.RepositoryIDs {
		r := c.repos[n]
		if r == nil || !i.has(r) {
			c.refuse(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
		if only == nil {
			only = map[int64]bool{}
		}
		if !only[n] {
			only[n], named = true, append(named, r)
		}
	}
	permissions := maps.Clone(i.permissions)
	if in.Permissions != nil {
		permissions = map[string]string{"metadata": "read"}
		for name, level := range in.Permissions {
			if levels[level] == 0 || !atLeast(i.permissions[name], level) {
				c.refuse(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
			}
			permissions[name] = level
		}
	}
	t := c.mint(i, permissions, only)
	o := obj{"token": t.text, "expires_at": stamp(t.expires), "permissions": permissions, "repository_selection": "all"}
	if !i.all || only != nil {
		o["repository_selection"] = "selected"
	}
	if only != nil {
		o["repositories"] = each(named, c.showRepo)
	}
	return http.StatusCreated, o
}

func (c *call) revokeToken() (int, any) {
	delete(c.tokens, c.who.token.text)
	return http.StatusNoContent, nil
}

func (c *call) installationRepos() (int, any) {
	var all []*Repo
	for _, n := range slices.Sorted(maps.Keys(c.repos)) {
		if r := c.repos[n]; c.who.covers(r) {
			all = append(all, r)
		}
	}
	selection := "selected"
	if c.who.inst.all {
		selection = "all"
	}
	return http.StatusOK, obj{"total_count": len(all), "repository_selection": selection, "repositories": each(list(c, all), c.showRepo)}
}

// hookConfig is the App's webhook. The secret is never shown.
func (c *call) getHook() (int, any) {
	o := obj{"content_type": "json", "insecure_ssl": "0", "url": c.who.app.hookURL}
	if c.who.app.secret != "" {
		o["secret"] = "********"
	}
	return http.StatusOK, o
}

func (c *call) patchHook() (int, any) {
	var in struct{ URL, Secret *string }
	c.in(&in)
	if in.URL != nil {
		c.who.app.hookURL = *in.URL
	}
	if in.Secret != nil {
		c.who.app.secret = *in.Secret
	}
	return c.getHook()
}

func (c *call) user() (int, any) { return http.StatusOK, c.showPerson(c.who.person) }

func (c *call) userByName() (int, any) {
	a := c.accounts[strings.ToLower(c.params["username"])]
	if a == nil {
		c.notFound()
	}
	return http.StatusOK, c.showPerson(a)
}

func (c *call) meta() (int, any) {
	o := obj{"verifiable_password_authentication": false}
	if c.o.Enterprise != "" {
		o["installed_version"] = c.o.Enterprise
	}
	return http.StatusOK, o
}

// rates shows the limits and costs nothing.
func (c *call) rates() (int, any) {
	c.free()
	w := current(c.limits.used, c.who.key()+" core", c.now(), time.Hour)
	limit := c.primary()
	core := obj{"limit": limit, "remaining": max(0, limit-w.used), "used": w.used, "reset": w.reset.Unix()}
	return http.StatusOK, obj{"resources": obj{"core": core, "search": obj{
		"limit": 30, "remaining": 30, "used": 0, "reset": w.reset.Unix(),
	}}, "rate": core}
}

// Deliveries of an App, newest first.
func (c *call) listDeliveries() (int, any) {
	all := slices.Clone(c.who.app.deliveries)
	slices.Reverse(all)
	all = slices.DeleteFunc(all, func(d *sent) bool {
		old := c.now().Sub(d.at) > 3*24*time.Hour
		switch c.query("status") {
		case "failure":
			return old || d.status == "pending" || d.code >= 200 && d.code < 400
		case "success":
			return old || d.code < 200 || d.code >= 400
		}
		return old || d.status == "pending"
	})
	per, err := strconv.Atoi(c.query("per_page"))
	if err != nil || per < 1 || per > 100 {
		per = 30
	}
	if from := strings.TrimPrefix(c.query("cursor"), "v1_"); from != "" {
		n, err := strconv.ParseInt(from, 10, 64)
		if err != nil {
			c.refuse(http.StatusBadRequest, "Invalid cursor")
		}
		all = slices.DeleteFunc(all, func(d *sent) bool { return d.id > n })
	}
	if len(all) > per {
		q := c.r.URL.Query()
		q.Set("cursor", fmt.Sprintf("v1_%d", all[per].id))
		c.header.Set("Link", fmt.Sprintf(`<%s/app/hook/deliveries?%s>; rel="next"`, c.API, q.Encode()))
		all = all[:per]
	}
	return http.StatusOK, each(all, c.showDelivery)
}

func (s *Server) showDelivery(d *sent) obj {
	o := obj{
		"id": d.id, "guid": d.guid, "delivered_at": d.at.UTC().Format(time.RFC3339Nano), "redelivery": d.again,
		"duration": d.took.Seconds(), "status": d.status, "status_code": d.code, "event": d.event, "action": null(d.action),
		"installation_id": nil, "repository_id": nil, "throttled_at": nil,
	}
	if d.inst != 0 {
		o["installation_id"] = d.inst
	}
	if d.repo != 0 {
		o["repository_id"] = d.repo
	}
	return o
}

func (c *call) delivery() *sent {
	n := c.number("delivery_id")
	for _, d := range c.who.app.deliveries {
		if d.id == n {
			return d
		}
	}
	c.notFound()
	return nil
}

func (c *call) getDelivery() (int, any) {
	d := c.delivery()
	o := c.showDelivery(d)
	o["url"] = c.who.app.hookURL
	headers := func(h http.Header) obj {
		out := obj{}
		for name := range h {
			out[name] = h.Get(name)
		}
		return out
	}
	o["request"] = obj{"headers": headers(d.header), "payload": json.RawMessage(d.payload)}
	o["response"] = obj{"headers": headers(d.answered), "payload": d.answer}
	return http.StatusOK, o
}

// redeliver sends a delivery again: a new attempt with the same GUID and body. It is
// signed with the secret of now.
func (c *call) redeliver() (int, any) {
	d := c.delivery()
	keep := 3 * 24 * time.Hour
	if c.o.Enterprise != "" {
		keep = 7 * 24 * time.Hour
	}
	if c.now().Sub(d.at) > keep {
		c.notFound()
	}
	c.again(d)
	return http.StatusAccepted, obj{}
}
