package app

import (
	"fmt"
	"reflect"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/openapi"
	"yardmaster/internal/api/reference"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/service"
	"yardmaster/internal/domain/session"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/hook"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

// groups is what the capabilities of a group are about, by the prefix of their
// ids.
var groups = map[string]string{
	"access_request":         "The waitlist: who asked to be let in, and what was decided.",
	"account":                "The account that a credential acts on, and what operators of the platform see and decide.",
	"actor":                  "Who did something, by name.",
	"ask":                    "Things that are wanted and not scheduled yet.",
	"artifact":               "Reports, pictures and builds that agents and people have stored.",
	"audit":                  "The record of every change.",
	"billing":                "The plan and what is paid for it, model keys, what is spent through them, and the monthly cap.",
	"ci":                     "The checks of commits, which boxes run, and what they wrote.",
	"blocker":                "What a task waits for a person to supply.",
	"box":                    "The machines that agents run on.",
	"code_host":              "The code hosts that the server is connected to, and what they sent.",
	"config":                 "Variables of prompts, which agents are told.",
	"dashboard":              "Boards of widgets: what is counted about the work of an account, shared or one's own.",
	"builtin_dashboard_sync": "The boards that every account has.",
	"digest":                 "What happened in an account, told each day and each week.",
	"donation":               "Money, machines and model keys given to a project or a pool.",
	"escalation":             "What agents handed to people.",
	"grant":                  "Entitlements that operators give to accounts and people.",
	"inbound":                "Where other systems deliver what has happened there.",
	"integration":            "Other systems of an account whose deliveries become asks.",
	"invitation":             "Invitations to the platform and to an account.",
	"issue":                  "The issues of code hosts, and what became of each.",
	"kb":                     "What people and agents know about a repository, in pages.",
	"mcp":                    "The same capabilities as tools of the Model Context Protocol.",
	"member":                 "Who belongs to an account, with which role, and how they get in.",
	"onboarding":             "The first steps of an account.",
	"operator_token":         "Short-lived tokens for those who run the platform.",
	"org_sso":                "Sign-in with an account's own identity provider.",
	"overview":               "What is going on, on one page.",
	"plan":                   "Work in several steps, over one or several repositories.",
	"pr":                     "Pull requests of agents and people, and the actions that wait for approval.",
	"project":                "Repositories, their policy files and their switches.",
	"project_secret":         "Values that the agents of one repository are given and that nobody reads back.",
	"review":                 "What agents find when they review pull requests.",
	"run":                    "Where the time of a task went.",
	"schedule":               "Asks that are filed again and again, at set times.",
	"secret":                 "Values that agents are given and that nobody reads back.",
	"self":                   "What belongs to a person and not to an account.",
	"service":                "What runs here, and how it describes itself.",
	"session":                "Conversations with models.",
	"stream":                 "Live events.",
	"system_prompt":          "What every agent of an account is told.",
	"task":                   "Scoped units of work, from the queue to the merge.",
	"template":               "Which agent runs with which model, and what it is told.",
	"token":                  "Personal access tokens: minted, listed, renamed and revoked. A token is shown once.",
	"mail":                   "Mails that are not sent, and addresses that mail servers have refused.",
	"email_route":            "Addresses of teams that get notices of the account.",
	"notification":           "What concerns the caller, and how they hear of it.",
	"push":                   "Browsers of the caller that take messages.",
	"webhook":                "Addresses of customers that are told of events, and what was sent there.",
	"user":                   "Who may use the platform.",
}

// contents are the groups in the order of the contract's tables. A capability has an
// entry of its own where the order of the domains would misplace it: task.stalls is of
// another domain than its group.
var contents = []string{
	"service", "account", "org_sso", "member", "invitation", "token", "operator_token", "access_request", "user", "billing", "grant",
	"onboarding", "mcp", "webhook", "integration",
	"task.create", "task.list", "task.stalls", "task",
	"plan", "project", "issue", "pr", "review", "ask", "schedule", "escalation", "box", "template", "config", "ci", "artifact",
	"system_prompt", "project_secret", "secret", "blocker",
	"self",
	"session", "stream", "audit", "actor", "kb", "notification", "email_route", "push", "overview", "dashboard",
	"builtin_dashboard_sync", "digest", "code_host", "inbound", "mail",
}

// order is how a reader meets the groups: work, what carries it out, permissions,
// then operators' groups.
var order = []string{
	"task", "ask", "schedule", "plan", "blocker", "issue", "pr", "review", "escalation", "session", "stream", "notification",
	"email_route", "push", "overview", "dashboard", "digest", "project", "kb", "box", "template", "config", "ci", "artifact",
	"system_prompt", "project_secret", "secret", "self", "account", "onboarding", "token",
	"member", "invitation", "org_sso", "billing", "audit", "actor",
	"mcp", "webhook", "integration", "service", "operator_token", "access_request", "user", "grant",
	"builtin_dashboard_sync", "code_host", "inbound", "mail",
}

var description = strings.NewReplacer("~~scopes", scopeList(), "~", "`").Replace(
	`Yardmaster is a control plane for AI developer agents: they triage issues, work on tasks on machines called boxes, open and look after pull requests, and follow plans. The tenant is an account; a user is a person who may belong to several.

Every capability has an id of the form group.verb. It is the ~operationId~ here and the name of the tool at POST /v1/mcp; both give the same answer and the same refusals.

## Credentials

* Authorization: Bearer with a personal access token, which is bound to one account and holds a subset of the scopes. Programs get one by OAuth 2.1.
* The session cookie of a browser. Its writes must come from the service's own origin, and X-Svc-Account says which account they are about. A token ignores that header: it stays bound to the account that it was minted in.
* Sign-in and POST /v1/mcp look at the Origin as well, whatever the credential: pages of sites that are not the service's own, and over MCP not on the caller's machine or allowed by the operator, are refused with 403 ~cross-origin~.
* A missing or bad credential is 401, a missing scope 403. An id that does not exist and one of another account are the same 404.

## Scopes

What each lets its holder do:

~~scopes

## Errors

Every failure is a problem document (RFC 9457); a browser that asks for text/html outside of /v1 gets a page with the same status. Switch on the last segment of its ~type~, never on its ~title~; the address answers a page that explains it. ~errors~ maps the dotted path of a field to what is wrong with it. A 409 carries a ~reason~. request_id is the X-Request-Id of the response: the caller's, if it is printable ASCII of at most 200 characters, else one that is made. It is the caller's word, and proves nothing.

Answers carry Cache-Control: no-store unless they are for everybody.

## Writing twice

A write under /v1 that shows no secret takes an Idempotency-Key, if it comes with a credential. The same key with the same credential, method, path and body is answered what the first call was, for 24 hours, with X-Idempotent-Replayed: true; for anything else in the account it is refused with 409. What shows a secret once is never kept.

## Lists

* A collection answers ~data~ and next_cursor. Send next_cursor back as ~cursor~, with per_page as you like; ~null~ means that nothing follows.
* ~sort~, filter=key:value and ~q~ are taken where they are listed. A ~sort~ that is not the cursor's is refused.
* Parameters that are not listed are refused, ~page~ and ~limit~ by name.

## Streams

* The answer is text/event-stream; each frame has an ~event~ and, as ~data~, one line of JSON. The operations name their events. The event ~error~ carries a problem, and ends the stream.
* A stream whose parameters list Last-Event-ID goes on after the frame of that id; every other one refuses the header with 400. After the event ~end~ nothing follows. Its id is that of the last row with .end behind it, so that a client that was cut off before the end still hears it. Who connects again and sends the id of the end is answered 204 by a stream that goes on, and 400 by one that does not. Either tells a browser to stop.
* Streams begin with ~retry: 3000~.

## Limits

* 600 reads and 600 writes a minute of a credential, 120 writes a minute of a conversation, 1200 requests a minute of an address, and as many writes a minute of an account, by all credentials together, as account.quota says. The minute slides.
* What an account stores is limited as well: bytes, rows, repositories, tokens. What has no room is 507 ~quota-full~, whose ~quota~, ~used~ and ~most~ say what is full and how much it holds; nothing is changed.
* All of REST is one conversation of its credential; conversation_ref names one over MCP.
* RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset describe the bucket that runs out first. A 429 carries Retry-After, as does a 503 ~too-many-open~.
* A body may have 1 MiB where nothing else is said.`,
)

// scopeList lists the scopes with their words.
func scopeList() string {
	var b strings.Builder
	for _, s := range policy.Vocabulary() {
		fmt.Fprintf(&b, "* `%s`: %s\n", s, s.Words())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Document is the OpenAPI document, as it is kept with the sources.
func Document() ([]byte, error) { return describe("") }

// describe renders the document for a version.
func describe(version string) ([]byte, error) {
	return openapi.Render(openapi.About{
		Title: "Yardmaster", Version: version, Description: description, Contact: "Who runs this server", License: "Apache-2.0",
		Groups: groups, Order: order, Meaning: service.Meaning, Credentials: credentials, Samples: samples,
		Known: known(), Hooks: hooks(),
		FixLink: "The token of a blocker's fix link does as well, for that blocker.",
	}, Ops())
}

// known are the values of fields that may have others, from the catalogues of those who
// write them.
func known() map[string][]string {
	return map[string][]string{
		"run_events": run.EventKinds(), "session_events": session.EventKinds(), "hold_reasons": task.HoldReasons(),
		"ask_sources": ask.Sources(),
	}
}

// hooks are the events that webhooks are sent, with the types that are marshalled for
// them.
func hooks() openapi.Hooks {
	out := openapi.Hooks{Body: reflect.TypeFor[webhook.Envelope](), Headers: hook.Headers()}
	for _, name := range webhook.Types() {
		h := openapi.Hook{Name: name, Data: reflect.TypeFor[webhook.Notice]()}
		switch name {
		case webhook.PullMerged:
			h.Doc, h.Data = "A pull request was merged that is the work of an agent, or was looked after by agents.", record.MergedEvent.Data()
		case webhook.IssueEscalated:
			h.Doc, h.Data = "A person is asked about an issue of a code host.", issue.EscalatedEvent.Data()
		case webhook.IssueHandoff:
			h.Doc = "An issue was handed to the webhook that webhook_ref names, and to no other."
			h.Data = issue.HandoffEvent.Data()
		case webhook.TestPing:
			h.Doc, h.Data = "webhook.test was called.", reflect.TypeFor[webhook.Ping]()
		default:
			_, kind, _ := strings.Cut(name, ".")
			h.Doc = "People are told: " + notification.Doc(kind) + " Sent only where it is asked for by name."
		}
		out.Events = append(out.Events, h)
	}
	return out
}

// documentAsset is the document as it is served.
func documentAsset(version string) (*op.Asset, error) {
	b, err := describe(version)
	return &op.Asset{ContentType: "application/json", Body: b}, err
}

// referenceAsset is the document as a page.
func referenceAsset(version string) (*op.Asset, error) {
	b, err := describe(version)
	if err == nil {
		b, err = reference.Render(b, web.ReferenceStyle, web.ReferenceScript)
	}
	return &op.Asset{ContentType: "text/html; charset=utf-8", Policy: reference.Policy, Body: b}, err
}
