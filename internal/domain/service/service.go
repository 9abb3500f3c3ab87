// Package service describes the control plane to its callers: its card, its health,
// its OpenAPI document, and a page for every problem type.
package service

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/needs"
)

// probeTime bounds each probe of a dependency.
const probeTime = 2 * time.Second

// Sessions knows browser sessions.
type Sessions interface {
	// Who returns the logins of the user of the calling session and of the account
	// for which it acts. Without a session both are empty.
	Who(ctx context.Context) (login, account string, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	Version string
	SHA     string // git commit of a released build; otherwise empty
	// Probes check the dependencies of the server, by name: database, bus, cache.
	Probes map[string]func(context.Context) error
	// Needed names the probes without which no request can be answered.
	Needed []string
	// Free returns how many bytes the server can still store.
	Free func() (int64, error)
	// Stopping tells whether the process is about to end.
	Stopping func() bool
	Sessions Sessions
	// Dashboard tells whether the dashboard is served.
	Dashboard bool
	// Document returns the OpenAPI document, Reference the page made from it. Each is
	// made once.
	Document, Reference func() (*op.Asset, error)
}

// Service implements the capabilities that describe the server.
type Service struct {
	Needs
	calls func() (*op.Asset, error) // see callables
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n, calls: sync.OnceValues(func() (*op.Asset, error) {
		doc, err := n.Document()
		if err != nil {
			return nil, err
		}
		return callables(doc.Body)
	})}
}

// Card is the answer of the root path. It has no data of any account.
type Card struct {
	Name    string `json:"name"`
	Status  Status `json:"status"`
	Version string `json:"version"`
	Docs    string `json:"docs"`
}

// Health is the answer of /healthz.
type Health struct {
	Status Status                 `json:"status"`
	SHA    *string                `json:"sha" doc:"commit of the running build; null on an unreleased one"`
	Checks map[string]ProbeResult `json:"checks"`
}

// ProbeResult is the result of one probe.
type ProbeResult struct {
	Status    CheckStatus `json:"status" doc:"degraded still works, and needs somebody to look at it"`
	Detail    *string     `json:"detail,omitempty" doc:"what is wrong, where that may be said"`
	FreeBytes *int64      `json:"free_bytes,omitempty" doc:"of storage: what may still be stored"`
}

// StatusCode returns 503 if a dependency failed.
func (h Health) StatusCode() int {
	for _, c := range h.Checks {
		if c.Status == failed {
			return 503
		}
	}
	return 200
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status string                 `json:"status" enum:"ready,not-ready,stopping"`
	Checks map[string]ProbeResult `json:"checks" doc:"those without which no request is answered well"`
}

// StatusCode returns 503 if the server should get no requests.
func (r Readiness) StatusCode() int {
	if r.Status != "ready" {
		return 503
	}
	return 200
}

// Trouble is an error of a probe whose text anybody may read.
type Trouble struct {
	Degraded bool // the dependency works, but badly
	Detail   string
}

func (t *Trouble) Error() string { return t.Detail }

// Status is whether all of the server works.
type Status string

// Values lists both.
func (Status) Values() []string { return []string{healthy, degraded} }

// CheckStatus is how a part of the server fares.
type CheckStatus string

const (
	healthy  = "ok"
	degraded = "degraded"
	failed   = "failed"
)

// Values lists all of them.
func (CheckStatus) Values() []string { return []string{healthy, degraded, failed} }

// Meaning returns the explanation of a slug, or "" if the slug says no more than its
// status.
func Meaning(slug string) string { return meanings[slug] }

// meanings are the explanations of slugs that say more than their status.
var meanings = map[string]string{
	"missing-scope":    "The credential is valid but lacks scopes that the route asserts; missing_scopes names them.",
	"user-required":    "The route is personal: it needs a credential that names a user. Machine tokens do not.",
	"session-required": "The route works for a signed-in browser session only, not for a token.",
	"not-a-member":     "X-Svc-Account names an account that does not exist or that the user does not belong to.",
	"cross-origin":     "A write with the session cookie must come from the service's own origin.",
	"idempotency-conflict": "The Idempotency-Key was used before, in the account, for something else: by another credential, " +
		"for another method or path, or with another body.",
	"idempotency-in-flight": "The request that used the Idempotency-Key first is still being answered, or was cut off before " +
		"it was. Try again later.",
	"reauth-required":      "The call needs a session that signed in within the last hour. Prove again who you are at /auth/reauth.",
	"wrong-code":           "The code that was mailed is another one, was used, is older than ten minutes, or was guessed at five times.",
	"not-invited":          "Nobody here knows the person yet, and people come by invitation.",
	"sso-session":          "The session was opened by an account's own identity provider, and is good in that account only.",
	"signin-lost":          "The sign-in was begun in another browser, or too long ago.",
	"provider-refused":     "The identity provider does not vouch for the person, or not in a way that can be relied on.",
	"provider-unreachable": "The identity provider could not be asked; its address must be public and use https.",
	"already-given":        "The key or the box is given already. Take that gift back first (donation.cancel).",
	"not-lendable":         "The box cannot be lent to the work of others; the detail says why, and what to do.",
	"not-llm":              "A model is picked only for a gift of the kind llm.",
	"donation-parked":      "The gift is over. Whoever gave it can give it anew.",
	"no-platform-ssh-key":  "The deployment has no key to dial machines with. Its operator has to name one with ssh-key-file.",
	"ssh-join-running":     "The machine is being called already. box.ssh_joins shows what comes of it.",
	"log-sink-refused":     "The sink has not taken a probe; the detail says why. What was set before stays.",
	"wrong-password":       "There is no such login, or the password is wrong.",
	"quota-full": "The account has as much as it may have of what quota names: used and most say how much. Delete what is not " +
		"needed, or ask an operator of the server to raise it.",
	"no-object-store":          "The server keeps no objects. Its operator has to say with blob where they go.",
	"object-store-unavailable": "The store of objects does not answer, or not in time. Nothing was changed; try again after retry_after seconds.",
	"object-exists":            "An object is uploaded once. What is there stays as it is.",
	"bytes-missing":            "The bytes of the artifact have not arrived, or are gone. Upload them first.",
	"artifact-link-expired":    "The link of the artifact has expired. Whoever shared it can make another.",
	"dashboard-exists":         "The name is that of another board; board_id and board_name say which. Send replace to rebuild it.",
	"dashboard-builtin":        "Every account has the built-in boards; they are neither changed nor deleted. Make one of another name.",
	"dashboard-changed":        "The board has another version than the one that was to be changed; version says which. Read it again.",
	"too-many-dashboards":      "The account, or a person in it, has as many boards as there may be. Delete one first.",
	"queue-full":               "The account's queue has reached its cap. Wait as long as Retry-After says.",
	"no-capacity":              "The account has no seat for an AI developer.",
	"problem-is-only-link":     "The problem text is nothing but links to issues or pull requests. Say what is to be done.",
	"sink-not-configured":      "Nothing is behind the sink for this repository: its code host keeps no issues, or no key of Linear was given (integration.linear_set).",
	"not_waiting":              "The task does not wait before its next try, so there is no wait to end.",
	"task_terminal":            "The task has ended; only a redispatch can bring a failed one back.",
	"question_changed":         "The question that is open is another one than was named.",
	"not_cancellable_review":   "A review cannot be cancelled while its pull request is open.",
	"no-topic": "None of the topics that were asked for exists and may be followed with this credential; ignored " +
		"and unauthorised name them.",
	"key-rotated":          "The key got another secret while its provider was asked about the one before. Verify it again.",
	"too-many-keys":        "A person may have fifty keys of model providers in an account. Delete one first.",
	"provider_auth":        "The model provider does not take the key.",
	"provider_quota":       "The model provider takes the key, and what it may spend is used up.",
	"provider_unavailable": "The model provider could not be asked, which says nothing of the key.",
	"too-many-open": "Too much is open at once: by the credential, the account, the address or in all. End some, or try again after " +
		"retry_after seconds.",
	"stream-cut": "The listener fell behind, or the stream could not be kept up. Connect again: a stream begins with a " +
		"fresh snapshot.",
	"session_running": "The session has not ended. What a policy would have decided can be told only of what is over.",
	"no_live_channel": "The run has no agent that can be spoken to: it has not begun, it has ended, or a plain command does its work.",
	"budget_exhausted": "A budget has no room for another call to a model. The work that was done is saved and the task is " +
		"held until the budget is raised.",
	"no_credential":     "The account has no key of a model provider that can be used for this. Add one.",
	"model_unavailable": "No model is named, and the provider of the account's key has none of its own. A template names one.",
	"unpriced_model": "A limit in dollars holds, and the model has no price that it could be held to. The task is held " +
		"until the model or the key has a price (nothing is one), or no limit is left.",
	"export-too-large":      "The session has more events than one download carries. Follow its events instead.",
	"file-too-large":        "The file is larger than 1 MiB. Clone the repository to read it.",
	"head_moved":            "The pull request has a newer head than the one that was decided on; current_head_sha names it.",
	"checks_not_passed":     "The checks of this head have not passed (yet), so that it is not merged.",
	"action-link-expired":   "The link has expired. The pull request shows what is asked now.",
	"already_redeemed":      "The link was used already.",
	"bad-signature":         "The delivery is not signed with the secret of this server's App.",
	"payment-signature":     "The event is not signed with the secret of this server's endpoint at Stripe, or was signed more than five minutes ago.",
	"no-payment":            "This server takes no payment for it. Operators set tiers and seats.",
	"no-customer":           "The account has paid for nothing yet, so there is nothing to look after.",
	"already-subscribed":    "The account has such a subscription. It is changed in the portal (billing.portal).",
	"payment-unavailable":   "The provider of payments does not answer. The same request works later.",
	"payment-refused":       "The provider of payments refuses the call of this server; its operator finds the reason in the log.",
	"busy":                  "Other deliveries of the source are being worked at. Send it again.",
	"code-host-unavailable": "The code host does not answer. Try again later.",
	"finding_closed":        "The finding is settled already.",
	"goal-board-unreadable": "The board of goals cannot be read: none is configured, or its code host does not answer; reason says which.",
	"goal-exists":           "There is a goal of that title.",
	"goal-id-unknown":       "There is no such goal on the board.",
	"no-code-host":          "The repository is at no code host for which people may store tokens.",
	"no-host-token":         "You have stored no token of your own for the code host.",
	"no_review":             "The pull request was never reviewed.",
	"no_approval":           "There is no approval of the caller's that could be taken back.",
	"merge_begun":           "The code host was told to merge already.",
	"no_request":            "Nothing that is requested of the pull request can be taken back by the caller.",
	"thread_full":           "The thread has 50 comments, or 64 KiB of text. Begin another one.",
	"not_resolvable":        "The code host resolves threads on lines, and not what is said about the whole.",
	"plan_done":             "The plan of the pull request is done.",
	"question_expired":      "Nobody answered the question in time.",
	"repo-not-granted":      "The token does not give access to the repository.",
	"repo_ambiguous":        "A repository of this name at another code host is enabled. Disable that one first.",
	"repo_out_of_reach":     "The code host does not let the server at the repository any more.",
	"setup-refused":         "The code host did not hand out the App. Begin the set-up again.",
	"setup-unknown":         "The set-up was begun by somebody else, more than an hour ago, or is over. Begin it again at /gh/setup.",
	"token-refused":         "The code host refuses the token.",
	"token-replaced":        "Another token was stored meanwhile.",
	"too-many-bindings":     "You have bound as many repositories as one person may.",
	"commits_gone":          "The code host no longer has the commits of the pull request, so that nothing can be shown of them.",
	"repo_disabled":         "The repository is disabled for Yardmaster.",
	"is-operator":           "Nobody makes a link to the password of an operator but the operator, by mail, or whoever has the machine of the server.",
	"not_approvable":        "Only an ask of a run that waits for a person is approved; state and escalation_reason of the ask say what it is.",
	"not-your-box":          "The box takes somebody else's work, or its account's, and nobody asks the caller to own it.",
	"no-live-box":           "A scout's session needs an online box with an agent that takes messages; needed_mode and template say which.",
	"plan-path":             "The path is not that of a plain directory inside the repository.",
	"plan-invalid":          "The directory is no plan; problems lists all that is wrong with it.",
	"plan-file-off":         "The account does not let plan documents be written into its repositories.",
	"plan-closed":           "The plan of the directory is done or cancelled. File another one under another slug.",
	"plan-running":          "The plan of the directory is running; its documents cannot change under it.",
	"plan-stale":            "The directory is no longer what the documents are a correction of; plan_id names its newest plan.",
	"plan-stopped":          "All groups of the plan were stopped.",
	"plan-drafting":         "The plan has no groups until its scout comes back with some.",
	"plan-not-open":         "The plan is in no state to be changed.",
	"group-settled":         "The group is over, or others have its place.",
	"unknown-group":         "The plan has no such group.",
	"unknown-ask":           "There is no such ask, or it has not been scheduled.",
	"unknown-task":          "There is no such task.",
	"no-such-edge":          "The group has no ordering-only edge from the one that was named.",
	"task-not-usable":       "The task is part of a plan already, looks after a pull request, or has ended badly.",
	"would-cycle":           "The change would make groups or tasks wait for themselves.",
	"upstream-failed":       "What the groups wait for has failed or was stopped; replace it as well.",
	"handoff-not-taken":     "The webhook is not sent issue.handoff. Hand the issue to another one, or make one with that event (webhook.create).",
	"issue-closed":          "The issue is not open at its code host. Reopen it there first.",
	"webhook-unhealthy":     "Nothing is sent to the webhook, because an event used up its attempts there. Revive it (webhook.revive) once its address answers, or name another one.",
	"not_redrivable": "Only an ask that was escalated because no judge answered goes back to triage. Look at its verdict, " +
		"and file a new one.",
	"import_in_flight":   "What was asked for before, an import or a pass, is queued or running; wait for its end.",
	"repo_not_enabled":   "The repository is not enabled for Yardmaster.",
	"pr_not_open":        "The pull request has been merged or closed.",
	"fork":               "The branch of the pull request is in another repository, where agents never push.",
	"release-halted":     "The release was halted by an operator: no box takes it.",
	"release-not-stored": "The bytes of the release are not on this installation.",
	"box-revoked":        "The box was revoked. It has to be enrolled anew.",
	"already_pending":    "The task is in the queue already.",
	"already_shipped":    "The task's work is in a pull request or merged. Only its pull request can be taken up again.",
	"operator_cancelled": "An operator cancelled the task, which is for good. Create a new one.",
	"in_flight":          "A box is at work on the task and it is not stuck. Reassign or cancel it.",
	"dependency_failed":  "The task depends on one that did not succeed; depends_on names it. Redispatch that one.",
	"no_pending_action":  "Nothing is asked about the pull request, or the question was answered before.",
	"enrollment-refused": "The enrollment token is unknown, used or expired. Mint a new one.",
	"no-signing-key":     "The server cannot sign credentials for boxes now.",
	"owner-not-possible": "The target cannot own a box of this account.",
	"invitation_revoked": "The invitation was withdrawn. Invite the address anew.",
	"already_accepted":   "The invitation was accepted and can neither be withdrawn nor sent again.",
	"already_member":     "The person is a member of the account already.",
	"already-approved":   "The account is verified as an open-source project already; there is nothing to apply for.",
	"platform-witnessed": "The event is one that the platform sees for itself; it cannot be reported.",
	"last_account":       "It is the only account that the person belongs to: without it they could not sign in.",
	"suspends_self":      "An operator would shut themselves out. Another operator of the server can do it.",
	"last_platform_admin": "The server would be left without an operator who can act. Let another " +
		"operator who was suspended back in first.",
	"last_owner":                 "The account would be left without an owner. Make somebody else one first.",
	"already_decided":            "The application was invited or declined before; decision says which.",
	"owner-required":             "Only an owner of the account can make an owner, change what one is, or have the account deleted.",
	"account-needed":             "The account cannot be deleted as it is; the detail says what stands in the way.",
	"deletion-begun":             "The account is being deleted already. What was begun is not taken back.",
	"unsubscribe-link-malformed": "The link of a mail was cut off or changed. Copy it whole from the mail.",
	"unsubscribe-link-expired":   "Links to unsubscribe are good for 60 days. Use that of a newer mail, or choose in your notification preferences.",
	"email-route-exists":         "An address has one route in an account. Delete it to choose other kinds.",
	"too-many-email-routes":      "An account has at most 20 routes to addresses of teams. Delete one first.",
	"too-many-confirmations":     "An account has at most 40 mails a day sent that ask for a confirmation. Try again tomorrow.",
	"email-route-confirmed":      "Somebody there has confirmed the address. There is nothing to ask.",
	"email-route-link-malformed": "The link of a mail was cut off or changed. Copy it whole from the mail.",
	"email-route-link-expired":   "Links that ask are good for 48 hours, those that end a kind for 60 days, and none outlives its route.",
	"mail-sent":                  "The mail was sent meanwhile. There is nothing to do.",
	"too-many-browsers":          "A person has as many browsers that take messages as there may be. Unsubscribe one first.",
	"webhook-exists":             "Names of webhooks are the account's own: choose another.",
	"too-many-webhooks":          "The account has as many webhooks as it may have. Delete one first.",
	"linear-refused":             "Linear does not take the API key. Make another one there.",
	"linear-busy":                "Linear does not answer, or limits the calls of the key. The same request works later.",
	"source-exists":              "Names of sources are the account's own: choose another.",
	"too-many-sources":           "The account has as many sources as it may have. Disconnect one first.",
	"not-generic":                "Only sources of the kind generic are read with a mapping.",
	"webhook-deleted":            "The webhook was deleted. Make another one.",
	"schedule-never":             "The expression is in order, and no day of the calendar fits it, such as the 30th of February.",
	"schedule-too-often":         "A schedule files at most once in five minutes. Name fewer minutes.",
	"too-many-schedules":         "The account has as many schedules as it may have. Delete one first.",
	"repo-exists":                "The code host has a repository of this name. Choose another, or have the App of the server installed there.",
	"owner-is-a-person":          "An App can make repositories for organisations only. Make it by hand, and install the App there.",
	"repo-not-made":              "The code host refused to make the repository; the detail says why.",
	"repo-being-made":            "The code host is yet to answer. The server goes on by itself; the same call tells what became of it.",
	"event-gone":                 "Events are kept for 30 days.",
	"page-changed":               "The page has another version than the one that was to be replaced; version says which. Read it again.",
	"text-of-people":             "The text lacks paragraphs that people wrote into the page, which only a person takes out; paragraphs has their beginnings.",
	"proposal-decided":           "Somebody has decided about the proposal, or the page was written meanwhile; state says what became of it.",
	"link-unresolved":            "A link leads to no page of the repository and to no file of provenance.files; unresolved names it.",
	"too-many-pages":             "The knowledge base of the repository has as many pages as it may have. Delete one first.",
	"too-many-templates":         "The account has as many templates as it may have.",
	"too-many-variables":         "The account has as many prompt variables as it may have.",
	"vault-full":                 "The vault holds as many secrets, or as much in them, as it may.",
	"other-process":              "Another process on the box holds the secrets of this attempt.",
	"blocker-closed":             "The blocker was answered, submitted, withdrawn or has expired.",
	"field-landed":               "The field has its value already; each is written once.",
	"code-host-gone": "The code host does not let this server at the repository: the App was uninstalled or suspended, or the " +
		"repository is archived. An owner of the organisation can change that at the code host.",
	"code-host-busy": "The code host, or the network to it, does not answer, or a limit of it is reached. The same request works " +
		"later; Retry-After says when to try if the host has said so.",
	"code-host-permission": "The App lacks a permission at the code host; detail names it. An owner of the organisation can " +
		"accept it there.",
	"code-host-rule": "A rule of the code host holds the change back; detail says what is missing.",
	"repository-away": "The server runs as several nodes, and the one that has the repository does not answer. The repository is " +
		"there again when that node is, with all that was pushed; nothing was changed.",
	"repository-lost": "What was pushed to the repository is no longer where the server kept it. Its operator has to put the " +
		"folder back from a copy.",
	"storage-full": "The server's disk or database is full. Nothing was changed. Once its operator " +
		"has made room, the same request works.",
	"fix-link-expired": "The link has expired; whoever may write secrets finds a new one on the list of blockers.",

	// The error codes of OAuth.
	"bad-ticket":              "The form belongs to another session, was answered before, or was open for too long. Start again.",
	"invalid_client":          "The client_id was not issued by this server. Register the client again.",
	"invalid_client_metadata": "The registration asks for something that is not implemented.",
	"invalid_redirect_uri": "A redirect address must use https, http on a loopback address, or a scheme that is a domain " +
		"name in reverse.",
	"invalid_request":           "The request lacks something or is malformed (RFC 6749).",
	"invalid_grant":             "The code is unknown, spent or expired, or not good for this client, address and verifier (RFC 6749).",
	"invalid_scope":             "A scope that was asked for does not exist, or none of them can be given (RFC 6749).",
	"invalid_target":            "The resource that was asked for is not this server's (RFC 8707).",
	"unsupported_grant_type":    "Only the authorization code grant is implemented (RFC 6749).",
	"unsupported_response_type": "Only the response type code is implemented (RFC 6749).",
	"access_denied":             "The user said no.",
	"authorization_pending":     "Nobody has decided yet. Ask again after the interval (RFC 8628).",
	"slow_down":                 "The interval between two polls was too short. Wait five seconds more from now on (RFC 8628).",
	"expired_token":             "The device code has expired. Start again (RFC 8628).",
}
