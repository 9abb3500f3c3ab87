package transcript

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/app"
	"yardmaster/internal/db"
)

// record collects facts about the transcripts of a package while they are played.
type record struct {
	mu    sync.Mutex // transcripts are played in parallel
	file  io.Writer
	rows  map[string][]int // numbers of audit rows that the successes of each changing row wrote
	tool  map[string]bool  // rows that were called as tools, and whether they succeeded
	shown map[string]bool  // rows that succeeded over REST
}

func newRecord(t *testing.T) *record {
	t.Helper()
	r := &record{rows: map[string][]int{}, tool: map[string]bool{}, shown: map[string]bool{}}
	if path := os.Getenv(exchangesEnv); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		r.file = f
	}
	return r
}

type auditRow struct{ Kind, Object string }

// An act of an operator is recorded on the platform's chain and on that of the
// account. It counts as one row here.
var auditOf = db.Q[auditRow](`SELECT kind, COALESCE(object, '') AS object FROM audit a
		WHERE request_id = $1 AND NOT (account_id IS NULL AND EXISTS (
	SELECT 1 FROM audit o
		WHERE o.request_id = a.request_id AND o.account_id IS NOT NULL AND o.actor = 'operator' AND o.kind = a.kind
		AND o.object = a.object))`)

// note records an exchange. It returns an error unless a change has written one audit
// row of its own, and every other call none.
func (r *record) note(k *talk, o op.Op, body string, a answer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.write(k, o, body, a); err != nil || o.ID == "mcp.rpc" {
		r.shown[o.ID] = r.shown[o.ID] || succeeds(o, a)
		return err
	}
	if !k.tools {
		r.shown[o.ID] = r.shown[o.ID] || succeeds(o, a)
	}
	if err := k.keptWithItsChange(o, a); err != nil {
		return err
	}
	var rows []auditRow
	err := k.DB.Read(k.T.Context(), func(tx *db.Tx) (err error) {
		rows, err = auditOf.All(tx, a.Header.Get("X-Request-Id"))
		return err
	})
	if err != nil {
		return err
	}
	if a.StatusCode >= 400 || o.Method == http.MethodGet || a.Header.Get("X-Idempotent-Replayed") != "" {
		if len(rows) > 0 && (auditedReads[o.ID] == "" || len(rows) > 1) {
			return fmt.Errorf("%s changes nothing (%d) and writes audit rows: %v", o.ID, a.StatusCode, rows)
		}
		return nil
	}
	own := slices.DeleteFunc(slices.Clone(rows), func(r auditRow) bool { return slices.Contains(moves[o.ID], r.Kind) })
	slices.SortFunc(rows, func(a, b auditRow) int { return strings.Compare(a.Kind+a.Object, b.Kind+b.Object) })
	r.rows[o.ID] = append(r.rows[o.ID], len(own))
	if len(own) > 1 || len(own) == 0 && len(rows) > 0 || len(slices.Compact(slices.Clone(rows))) != len(rows) {
		return fmt.Errorf("%s writes %d audit rows of its own: %v", o.ID, len(own), rows)
	}
	return nil
}

func succeeds(o op.Op, a answer) bool { return a.StatusCode < 300 || a.StatusCode == o.Status }

// write appends an exchange to the file named by exchangesEnv.
func (r *record) write(k *talk, o op.Op, body string, a answer) error {
	if r.file == nil || k.tools || !strings.HasPrefix(o.Path, "/v1/") {
		return nil
	}
	b, err := json.Marshal(struct {
		Op, Method, URL string
		Sent            http.Header
		Request         string
		Status          int
		Header          http.Header
		Response        string
	}{o.ID, a.Request.Method, a.Request.URL.RequestURI(), a.Request.Header, body, a.StatusCode, a.Header, string(a.body)})
	if err == nil {
		_, err = r.file.Write(append(b, '\n'))
	}
	return err
}

// asked is what whoever approves has requested before, and is over.
const asked = "pr.request_withdrawn"

// moves lists the kinds of audit rows that a call may write besides its own, because
// the contract lets it change other objects, each with a record of its own. No such
// object has two rows of a kind.
var moves = map[string][]string{
	// The contract has it make one; the ask of the issue is the person's, and what was asked before is decided.
	"issue.escalate":        {"escalation.raised", "escalation.resolved", "ask.escalated"},
	"issue.handoff":         {"escalation.resolved", "ask.dropped"}, // nobody else sees to it
	"ask.file":              {"issue.filed", "escalation.resolved"}, // the issue that it is about follows it
	"webhook.delete":        {"issue.handoff_failed"},               // of what was on its way there
	"donation.create":       {"donation.told"},                      // the other account
	"donation.cancel":       {"donation.told"},
	"donation.decline":      {"donation.told"},
	"donation.set_model":    {"donation.told"},
	"billing.key_delete":    {"donation.parked", "donation.told"}, // what it was given for
	"ask.redrive":           {"escalation.resolved"},              // nobody is asked any more
	"pr.approve_pending":    {"task.mergeable", asked},            // its task moves with it
	"pr.action_link_redeem": {"task.mergeable"},
	"pr.ask_again":          {"task.awaiting_review"}, // back, if it was to be merged
	"pr.merge":              {"task.mergeable", asked},
	"project.ask":           {"session.ended"},                                 // the session with the model begins and ends
	"project.create":        {"repo.installed", "repo.pushed", "task.created"}, // it is known, has its first commit and is set up
	"pr.rearm_babysit": {
		"escalation.resolved",
		"task.unstuck",
		"pr.babysit_round",
		"task.created",
	}, // as after a redrive; its task goes on, and a round begins
	"review.rerun":            {"task.created"},                     // of the finder
	"review.dismiss":          {"task.mergeable", "approval.asked"}, // the merge waited for it
	"blocker.answer":          {"task.released"},                    // the held task goes back to the queue
	"blocker.fix_link_redeem": {"task.released"},                    // as does this
	"blocker.submit":          {"task.released"},                    // and this
	"plan.approve":            {"task.created"},                     // tasks are minted in one transaction with the approval
	"plan.cancel": {
		"task.cancelled",
		"run.ended",
		"pr.closed",
		"approval.stale",
		"escalation.resolved",
	}, // non-terminal children end with it
	"plan.execute": {"task.created"},                // of the units that wait for nothing
	"plan.file":    {"task.created", "repo.pushed"}, // and the documents are pushed
	"plan.regroup": {"task.released"},               // dependents that the old group held or killed
	"plan.start":   {"task.created"},                // a scout, or one a repository
	"task.cancel": {
		"run.ended",
		"task.failed",
		"pr.closed",
		"approval.stale",
		"escalation.resolved",
	}, // the box is interrupted; dependents fail; its pull request is closed
	"pr.unapprove": {"approval.asked", "task.awaiting_review"}, // the question is open again
	"member.remove": {
		"approval.skipped",
		"approval.asked",
		"task.awaiting_review",
		"token.revoked",
		"invitation.revoked",
		"account.deletion_taken_back",
	}, // what the person has ordered to merge, and is not begun, is asked anew; what they have set out ends
	"member.leave":    {"token.revoked", "invitation.revoked", "account.deletion_taken_back"},
	"member.set_role": {"invitation.revoked", "account.deletion_taken_back"},
	"review.request_changes": {
		"approval.skipped",
		"approval.stale",
		"task.awaiting_review",
		"pr.babysit_round",
		"task.created",
	}, // a no to what is asked, and a round answers it
	"review.withdraw_request": {
		"approval.asked",
		"task.mergeable",
	}, // which is asked anew, or goes on
	"schedule.run_now": {"ask.filed"},     // the ask is what it is for
	"task.redispatch":  {"task.released"}, // released_dependents
}

// auditedReads lists the rows that write an audit row although they are GET or refuse, and
// why.
var auditedReads = map[string]string{
	"auth.device_token":    "a code that comes twice has leaked: its token is revoked, and the caller refused",
	"auth.github_callback": "the browser is sent there: the sign-in is the change",
	"auth.oidc_callback":   "the browser is sent there: the sign-in is the change",
	"service.oauth_token":  "a code that comes twice has leaked: its token is revoked, and the caller refused",
}

// called records a call of a tool.
func (r *record) called(o op.Op, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tool[o.ID] = r.tool[o.ID] || a.StatusCode < 300
}

// unaudited lists the rows that are not GET and change nothing that is audited, and
// why.
var unaudited = map[string]string{
	"box.update":                  "no box there can update itself, so that nothing starts; a test of rollout holds the rows of one that does",
	"self.runner_agree":           "one person has nobody else to ask: it is called again; a test of box holds the row of the first time",
	"auth.device":                 "nobody is signed in yet; the decision about the code is the change",
	"code_host.setup_begin":       "the App that the host makes is the change; its storing writes one",
	"auth.email":                  "mails a code; the sign-in with it is the change",
	"auth.password_forgotten":     "answers strangers; what it leads to is on record",
	"invitation.confirm":          "its transcript is turned away; invitation.accept does the same and writes one",
	"notification.read":           "a person has looked; the inbox is theirs alone",
	"notification.unread":         "as reading",
	"notification.archive":        "as reading",
	"notification.read_all":       "as reading",
	"billing.provider_models":     "asks a provider and keeps nothing, the key least of all",
	"self.provider_models":        "as that of the account",
	"push.test":                   "sends a message to the caller alone",
	"webhook.revive":              "its webhook is well; the tests of the domain revive one that is not",
	"project.policy_validate":     "reads the file that it is sent",
	"service.oauth_register":      "keeps nothing: the registration is sealed into the client_id",
	"session.replay":              "tells what would have been, and changes nothing",
	"task.simulate":               "tells what would have been, and changes nothing",
	"dashboard.widget_page":       "reads what a widget shows",
	"integration.linear_delete":   "there is no key to forget in its transcript; the tests of the domain forget one",
	"integration.mapping_preview": "reads what was delivered",
	"task.reassign":               "its transcript has no task in flight to move; a move of any task writes one",
}

// ofSessions lists the tools that succeed for no token, and why.
var ofSessions = map[string]string{
	"member.leave":                  "takes a person out of an account, who is at their browser",
	"invitation.accept_mine":        "a person accepts it themself, at their browser",
	"invitation.joining_set":        "a person allows it themself, at their browser",
	"account.active_account_switch": "turns a session to another account; a token is of one for life",
	"operator_token.issue":          "wants a fresh sign-in, which a token has none of",
}

// needsHost lists the rows that no transcript can show a success of, and why. Those of a
// code host are shown by the test of app that walks a pull request at GitHub.
var needsHost = map[string]string{
	"box.rollout_cancel":     "boxes there cannot update themselves; a test of rollout ends one",
	"ask.approve":            "no call files an ask of a run; a test of ask lets one in",
	"billing.stripe_webhook": "Stripe signs what it delivers; the tests of the domain deliver",
	"billing.checkout":       "Stripe makes the page; a test of app opens one",
	"billing.portal":         "Stripe makes the page; a test of app opens one",
	"inbound.github":         "the host signs what it delivers",
	"integration.linear_set": "Linear is asked about the key",
	"code_host.replay":       "there is something to replay once the host has delivered it",
	"code_host.setup_end":    "the host hands out the code",
	"auth.link":              "no capability makes the address; a test of app opens it",
	"auth.link_use":          "no capability makes the address; a test of app presses its button",
}

// judge compares the rows of a package with its transcripts. Each row succeeds over
// REST, and as a tool if it is one. Each row that is not GET has a success that wrote
// an audit row. A call that changes nothing, such as the second revocation of a
// token, writes none.
func (r *record) judge(t *testing.T, pkg string) {
	t.Helper()
	for _, o := range app.OpsOf(pkg) {
		if o.Status >= 400 {
			continue // it never succeeds
		}
		if exempt := needsHost[o.ID] != ""; exempt && !r.shown[o.ID] {
			continue
		} else if exempt {
			t.Errorf("%s succeeds: remove it from needsHost in internal/proof/transcript/audit.go", o.ID)
		}
		if !r.shown[o.ID] {
			t.Errorf("%s succeeds in no transcript: add a step for %s %s to a testdata/*.txtar of its package", o.ID, o.Method, o.Path)
			continue
		}
		switch exempt := ofSessions[o.ID] != ""; {
		case !o.IsTool():
		case exempt && r.tool[o.ID]:
			t.Errorf("%s succeeds as a tool: remove it from ofSessions in internal/proof/transcript/audit.go", o.ID)
		case !exempt && !r.tool[o.ID]:
			t.Errorf("%s succeeds as a tool in no transcript: add a step without headers that answers 2xx", o.ID)
		}
		if len(r.rows[o.ID]) == 0 {
			continue
		}
		switch wrote := slices.Max(r.rows[o.ID]); {
		case wrote == 0 && unaudited[o.ID] == "":
			t.Errorf("%s changes something and writes no audit row: call event.Record in its transaction, "+
				"or say why in unaudited in internal/proof/transcript/audit.go", o.ID)
		case wrote > 0 && unaudited[o.ID] != "":
			t.Errorf("%s does write an audit row: remove it from unaudited in internal/proof/transcript/audit.go", o.ID)
		}
	}
}
