package github

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
	"yardmaster/internal/lazy"
)

// AppOptions describe an App to make. See the page "Registering a GitHub App from a
// manifest".
type AppOptions struct {
	Name        string
	URL         string // of this server, for people
	HookURL     string // where deliveries go; "": none are sent, and sweeps find what happens
	RedirectURL string // where GitHub sends the browser, with code and state
	CallbackURL string // of sign-in with GitHub; "" without
	SetupURL    string // where people go after they have installed the App; "" for none
	Public      bool   // other owners may install it

	Workflows      bool // "workflows: write", to push and merge workflow files
	Administration bool // "administration: write", to make repositories and be told of rules
}

// NeededPermission is a permission of the App and its reason, for the page of the setup.
type NeededPermission struct {
	Name, Level string
	Why         string
	Without     string // what does not work without it
	Switch      bool   // the App does without it unless the operator says otherwise
}

// Needed are all permissions that the App may have, in the order in which people read
// them.
var Needed = []NeededPermission{
	{"metadata", "read", "to find repositories, their collaborators and the rules of their branches", "nothing works", false},
	{"contents", "write", "to read, push and merge branches, and to resolve threads of reviews", "nothing is pushed or merged", false},
	{"pull_requests", "write", "to open, review and change pull requests", "no pull request is opened or reviewed", false},
	{"issues", "write", "to read issues, and to label, answer and close them", "issues are neither read nor answered", false},
	{"checks", "write", "to report checks, and to be told when somebody runs one again", "reviews report no check, and checks are read late", false},
	{"statuses", "read", "to read what other programs report about commits", "commit statuses are not seen", false},
	{"actions", "write", "to read logs of failed jobs and run the jobs again", "logs are missing, and flaky jobs are not run again", false},
	{"merge_queues", "write", "to merge where a branch has a merge queue", "branches with a merge queue are left to people", false},
	{"members", "read", "to know who belongs to the organisation", "teams are not known", false},
	{"workflows", "write", "to push and merge changes of workflow files", "changes of workflow files are pushed and merged by people", true},
	{"administration", "write", "to make repositories, and to be told when rules of branches change", "repositories are made by people, and changed rules are found late", true},
}

// events are what the App is told of. Events about installations come unasked.
var events = []string{
	"check_run", "check_suite", "issue_comment", "issues", "merge_group", "milestone", "pull_request", "pull_request_review",
	"pull_request_review_comment", "pull_request_review_thread", "push", "repository", "status", "workflow_run",
}

// administrationEvents need the switch.
var administrationEvents = []string{"branch_protection_rule", "repository_ruleset"}

// Manifest is the value of the field manifest of the form that makes an App, JSON.
func Manifest(o AppOptions) ([]byte, error) {
	type hook struct {
		URL    string `json:"url"`
		Active bool   `json:"active"`
	}
	m := struct {
		Name        string      `json:"name"`
		URL         string      `json:"url"`
		Hook        *hook       `json:"hook_attributes,omitzero"`
		Redirect    string      `json:"redirect_url"`
		Callbacks   []string    `json:"callback_urls,omitzero"`
		Setup       string      `json:"setup_url,omitzero"`
		SetupUpdate bool        `json:"setup_on_update,omitzero"`
		Public      bool        `json:"public"`
		Permissions permissions `json:"default_permissions"`
		Events      []string    `json:"default_events"`
	}{Name: o.Name, URL: o.URL, Redirect: o.RedirectURL, Setup: o.SetupURL, SetupUpdate: o.SetupURL != "", Public: o.Public,
		Permissions: permissions{}, Events: []string{}}
	if o.CallbackURL != "" {
		m.Callbacks = []string{o.CallbackURL}
	}
	on := map[string]bool{"workflows": o.Workflows, "administration": o.Administration}
	for _, p := range Needed {
		if !p.Switch || on[p.Name] {
			m.Permissions[p.Name] = p.Level
		}
	}
	if o.HookURL != "" {
		m.Hook = &hook{o.HookURL, true}
		if m.Events = append(m.Events, events...); o.Administration {
			m.Events = append(m.Events, administrationEvents...)
		}
	}
	return json.Marshal(m, json.Deterministic(true))
}

// AppAddress is where a browser posts the form with the field manifest. org is the
// organisation that shall own the App; "" is the person. GitHub gives state back.
func AppAddress(a Addresses, org, state string) string {
	path := a.Web + "/settings/apps/new"
	if org != "" {
		path = a.Web + "/organizations/" + url.PathEscape(org) + "/settings/apps/new"
	}
	return path + "?" + url.Values{"state": {state}}.Encode()
}

// Credentials are what GitHub tells once about an App that was made.
type Credentials struct {
	AppID         int64    `json:"id"`
	Slug          string   `json:"slug"`
	Name          string   `json:"name"`
	Owner         wireUser `json:"owner"`
	ClientID      string   `json:"client_id"`
	ClientSecret  string   `json:"client_secret"`
	WebhookSecret string   `json:"webhook_secret"` // "" if the App is sent no deliveries
	Key           string   `json:"pem"`
	HTMLURL       string   `json:"html_url"` // of the App, for people
}

// String leaves out the secrets.
func (c Credentials) String() string { return fmt.Sprintf("the App %s (%d)", c.Slug, c.AppID) }

var codePattern = lazy.New(`^[A-Za-z0-9_-]{1,200}$`)

// Convert exchanges the code that GitHub's redirect brought for the credentials of the
// App. A code is good once, for an hour. It fails with codehost.ErrNotFound for a code
// that is not good, and with *codehost.BusyError. A nil transport is
// http.DefaultTransport.
func Convert(ctx context.Context, a Addresses, transport http.RoundTripper, code string) (Credentials, error) {
	web, err := url.Parse(a.Web)
	if err != nil {
		return Credentials{}, fmt.Errorf("github: address: %w", err)
	}
	if !codePattern.MatchString(code) {
		return Credentials{}, codehost.ErrNotFound
	}
	zero := func() time.Time { return time.Time{} }
	h := &Host{
		cfg: Config{Addresses: a, Now: zero}, web: web, http: client(transport), limits: pace.Local(zero, pace.Timer{}),
		log: slog.New(slog.DiscardHandler),
	}
	var c Credentials
	_, err = h.send(ctx, request{method: http.MethodPost, path: "/app-manifests/" + code + "/conversions"}, &c)
	if _, invalid := refused(err, http.StatusUnprocessableEntity); invalid {
		err = codehost.ErrNotFound.Because(err)
	}
	return c, err
}
