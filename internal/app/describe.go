package app

import (
	"yardmaster/internal/op"
	"yardmaster/internal/reference"
)

// groups is what the capabilities of a group are about, by the group's name.
var groups = map[string]string{
	"Service and discovery":                            "What runs here, and how it describes itself.",
	"Account and platform operator":                    "The account that a credential acts on, and what operators of the platform see and decide.",
	"Personal settings":                                "What belongs to a person and not to an account.",
	"API tokens":                                       "Personal access tokens: minted, listed, renamed and revoked. A token is shown once.",
	"Organisation members, invitations, SSO":           "Who belongs to an account, with which role, and how they get in.",
	"Access requests and user approval":                "The waitlist: who asked to be let in, and what was decided.",
	"Billing keys, donations, grants, onboarding, MCP": "Model keys and what is spent through them, donations, entitlements that operators grant, and the first steps of an account.",
	"Billing":                        "Model keys, what is spent through them, and the monthly cap.",
	"Donations":                      "Money, machines and model keys given to a project or a pool.",
	"Grants":                         "Entitlements that operators give to accounts and people.",
	"Onboarding":                     "The first steps of an account.",
	"MCP":                            "The same capabilities as tools of the Model Context Protocol.",
	"Outbound webhooks":              "Signed deliveries of events to addresses that an account owns.",
	"Inbound webhooks":               "Deliveries of code hosts and trackers, which may file asks.",
	"Sign-in":                        "Sessions of browsers and of the command line.",
	"OAuth":                          "How a program gets a token with its user's consent.",
	"Overview":                       "What is going on, on one page.",
	"Repositories":                   "Repositories, their policy files and their switches.",
	"Issues":                         "Issues of repositories and what triage made of them.",
	"Pull requests":                  "Pull requests of agents and people, and the actions that wait for approval.",
	"Code review":                    "Reviews of pull requests.",
	"Asks":                           "Things that are wanted and not scheduled yet.",
	"Escalations":                    "What agents handed to people.",
	"Tasks":                          "Scoped units of work, from the queue to the merge.",
	"Blockers":                       "What a task waits for a person to supply.",
	"Plans":                          "Work in several steps, over one or several repositories.",
	"Fleet boxes (runners)":          "The machines that agents run on.",
	"Templates and prompt variables": "Which agent runs with which model, and what it is told.",
	"CI runs and artifacts":          "Runs of checks, and the files that runs leave behind.",
	"Sessions, audit, streams":       "Conversations with models, the record of every change, and live events.",
	"Knowledge base, dashboards, digests, notifications": "What was learnt of a repository, and what people are told.",
	"Notifications": "What people are told, and how.",
	"Secrets":       "Values that agents are given and that nobody reads back.",
}

const description = `Yardmaster is a control plane for AI developer agents: they triage issues, work on tasks on machines called boxes, open and look after pull requests, and follow plans. The tenant is an account; a user is a person who may belong to several.

Every capability has an id of the form group.verb. It is the operationId here and the name of the tool at POST /v1/mcp; both give the same answer and the same refusals.

## Credentials

* Authorization: Bearer with a personal access token, which is bound to one account and holds a subset of the scopes. Programs get one by OAuth 2.1.
* The session cookie of a browser. Its writes must come from the service's own origin, and X-Svc-Account says which account they are about. A token ignores that header: it stays bound to the account that it was minted in.
* Sign-in and POST /v1/mcp look at the Origin as well, whatever the credential: pages of sites that are not the service's own, and over MCP not on the caller's machine or allowed by the operator, are refused with 403 cross-origin.
* A missing or bad credential is 401, a missing scope 403. An id that does not exist and one of another account are the same 404.

## Errors

Every failure is a problem document (RFC 9457). Switch on the last segment of its type, never on its title; the address answers a page that explains it. errors maps the dotted path of a field to what is wrong with it. A 409 carries a reason. request_id is the X-Request-Id of the response: the caller's, if it is printable ASCII of at most 200 characters, else one that is made. It is the caller's word, and proves nothing.

Answers carry Cache-Control: no-store unless they are for everybody.

## Writing twice

A write takes an Idempotency-Key. The same key with the same credential, method, path and body is answered what the first call was, for 24 hours, with X-Idempotent-Replayed: true; for anything else in the account it is refused with 409. What shows a secret once is never kept.

## Lists

* A collection answers data and next_cursor. Send next_cursor back as cursor, with per_page as you like; null means that nothing follows.
* sort, filter=key:value and q are taken where they are listed. A sort that is not the cursor's is refused.
* Parameters that are not listed are refused, page and limit by name.

## Limits

* 600 reads and 600 writes a minute of a credential, 120 writes a minute of a conversation, 1200 requests a minute of an address. The minute slides.
* All of REST is one conversation of its credential; conversation_ref names one over MCP.
* RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset describe the bucket that runs out first. A 429 carries Retry-After.
* A body may have 1 MiB where nothing else is said.`

// Document is the OpenAPI document.
func Document() ([]byte, error) {
	return op.OpenAPI(op.About{Title: "Yardmaster", Description: description, Groups: groups}, Ops())
}

// documentAsset is the document as it is served.
func documentAsset() (*op.Asset, error) {
	b, err := Document()
	if err != nil {
		return nil, err
	}
	return op.NewAsset("application/json", "", b)
}

// referenceAsset is the document as a page.
func referenceAsset() (*op.Asset, error) {
	b, err := Document()
	if err == nil {
		b, err = reference.Render(b)
	}
	if err != nil {
		return nil, err
	}
	return op.NewAsset("text/html; charset=utf-8", reference.Policy, b)
}
