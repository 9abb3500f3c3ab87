// Package service is how the control plane describes itself: its card, its
// health, its OpenAPI document, and the page behind every problem type.
package service

import (
	"context"
	"time"
)

// probeTime bounds each probe of a dependency.
const probeTime = 2 * time.Second

// Service answers for the process as a whole.
type Service struct {
	Version string
	SHA     string // git commit of a released build, else empty
	// Probes are the dependencies by name: database, bus, cache.
	Probes map[string]func(context.Context) error
	// Document is the OpenAPI document, made once.
	Document func() ([]byte, error)
}

// Card is the answer of the root path. It holds no account state.
type Card struct {
	Name    string `json:"name"`
	Status  string `json:"status"`
	Version string `json:"version"`
	Docs    string `json:"docs"`
}

// Health is the answer of /healthz.
type Health struct {
	Status string                 `json:"status" enum:"ok,degraded"`
	SHA    *string                `json:"sha" doc:"commit of the running build; null on an unreleased one"`
	Checks map[string]ProbeResult `json:"checks"`
}

// ProbeResult is how one dependency answered.
type ProbeResult struct {
	Status string `json:"status" enum:"ok,failed"`
}

// StatusCode is 503 when a dependency failed.
func (h Health) StatusCode() int {
	if h.Status != "ok" {
		return 503
	}
	return 200
}

// meanings explains the slugs that say more than their status.
var meanings = map[string]string{
	"missing-scope":          "The credential is valid but lacks scopes that the route asserts; missing_scopes names them.",
	"user-required":          "The route is personal: it needs a credential that names a user. Machine tokens do not.",
	"session-required":       "The route works for a signed-in browser session only, not for a token.",
	"not-a-member":           "X-Svc-Account names an account that does not exist or that the user does not belong to.",
	"cross-origin":           "A write with the session cookie must come from the service's own origin.",
	"wrong-password":         "There is no such login, or the password is wrong.",
	"queue-full":             "The account's queue has reached its cap. Wait as long as Retry-After says.",
	"no-capacity":            "The account has no seat for an AI developer.",
	"problem-is-only-link":   "The problem text is nothing but links to issues or pull requests. Say what is to be done.",
	"sink-not-configured":    "The sink needs a connector that this server does not have.",
	"task_terminal":          "The task has ended; only a redispatch can bring a failed one back.",
	"not_cancellable_review": "A review cannot be cancelled while its pull request is open.",
	"head_moved":             "The pull request has a newer head than the one that was decided on; current_head_sha names it.",
	"repo_disabled":          "The repository is disabled for Yardmaster.",
	"repo_not_enabled":       "The repository is not enabled for Yardmaster.",
	"pr_not_open":            "The pull request has been merged or closed.",
	"box-revoked":            "The box was revoked. It has to be enrolled anew.",
	"already_pending":        "The task is in the queue already.",
	"already_shipped":        "The task's work is in a pull request or merged. Only its pull request can be taken up again.",
	"operator_cancelled":     "An operator cancelled the task, which is for good. Create a new one.",
	"in_flight":              "A box is at work on the task and it is not stuck. Reassign or cancel it.",
	"dependency_failed":      "The task depends on one that did not succeed; depends_on names it. Redispatch that one.",
	"no_pending_action":      "Nothing is asked about the pull request, or the question was answered before.",
	"enrollment-refused":     "The enrollment token is unknown, used or expired. Mint a new one.",
	"no-signing-key":         "The server cannot sign credentials for boxes now.",
	"owner-not-possible":     "The target cannot own a box of this account.",
	"too-many-templates":     "The account has as many templates as it may have.",
}
