package departure

import (
	"slices"

	"yardmaster/internal/db"
)

// Part says what of a table is an account's, and what becomes of it.
type Part struct {
	Table string
	// Where is the condition over $1, the account's id. Empty: it has none of the account.
	Where string
	// Private is why the rows are not in the archive; empty: they are.
	Private string
	// Stays is why the rows are not deleted with the account; empty: they are.
	Stays string
}

// Reasons why rows are not in an archive, or stay.
const (
	credential = "a credential, which is worth nothing anywhere else"
	derived    = "made of other rows, for the server to find them"
	letters    = "what the server has in hand, or has sent"
	ofPeople   = "a person's own, who may belong to other accounts: they go with the person"
	ofServer   = "the server's, or an operator's: it is no account's"
	chainEnd   = "the number and the hash at which a chain of the record ended, without which nobody could tell that it was whole"
	byDays     = "deliveries of a code host name no account, and go after keep-host-deliveries"
)

const own = "account_id = $1"

// of is the condition of a table whose column names a row of another table that has an account.
func of(column, table string) string {
	return column + " IN (SELECT id FROM " + table + " WHERE account_id = $1)"
}

// special are the tables of which something is to be said. Any other one has a column account_id, and
// its rows are exported and deleted.
var special = []Part{
	{Table: "accounts", Where: "id = $1"},
	{Table: "audit", Where: own},
	{Table: "audit_heads", Where: own, Private: chainEnd, Stays: chainEnd},
	{Table: "event_cursors", Where: own, Private: chainEnd, Stays: chainEnd},
	{Table: "operator_trail", Where: own, Private: ofServer, Stays: "the platform keeps what its operators have looked at"},
	{Table: "departures", Where: own, Private: "the proof itself", Stays: "the proof itself"},

	{Table: "run_events", Where: of("run_id", "runs")},
	{Table: "task_deps", Where: of("task_id", "tasks")},
	{Table: "lane_reports", Where: of("task_id", "tasks")},
	{Table: "plan_edges", Where: of("plan_id", "plans")},
	{Table: "plan_fanout_tasks", Where: of("fanout_id", "plan_fanouts")},
	{Table: "blocker_fields", Where: of("blocker_id", "blockers")},
	{Table: "session_events", Where: of("session_id", "sessions")},
	{Table: "source_seen", Where: of("source_id", "sources")},
	{Table: "email_route_mails", Where: of("route_id", "email_routes"), Private: letters},
	{Table: "rollout_boxes", Where: of("rollout_id", "rollouts")},
	{Table: "review_places", Where: of("finding_id", "review_findings")},
	{Table: "host_checks", Where: of("repo_id", "repos")},
	{Table: "ci_reruns", Where: of("repo_id", "repos")},
	{Table: "issue_walks", Where: of("repo_id", "repos"), Private: letters},
	{Table: "repo_sweeps", Where: of("repo_id", "repos"), Private: letters},
	{Table: "kb_pages", Where: of("repo_id", "repos")},
	{Table: "kb_versions", Where: of("repo_id", "repos")},
	{Table: "kb_proposals", Where: of("repo_id", "repos")},
	{Table: "kb_keepers", Where: of("repo_id", "repos"), Private: letters},
	{Table: "kb_links", Where: of("repo_id", "repos"), Private: derived},
	{Table: "kb_indexes", Where: of("repo_id", "repos"), Private: derived},
	{Table: "kb_grams", Where: of("repo_id", "repos"), Private: derived},
	{Table: "kb_terms", Where: of("repo_id", "repos"), Private: derived},
	{Table: "git_homes", Where: "EXISTS (SELECT 1 FROM repos r WHERE r.account_id = $1 AND r.host = 'builtin'" +
		" AND r.owner = git_homes.owner AND r.name = git_homes.name)", Private: ofServer},

	// What a box may take of another account is over with either of them.
	{Table: "box_consents", Where: own + " OR " + of("box_id", "boxes")},
	{Table: "box_commands", Where: own + " OR " + of("box_id", "boxes"), Private: letters},
	// The ledger of a gift is the giver's, whoever's work it was.
	{Table: "donation_uses", Where: of("donation_id", "donations")},

	{Table: "tokens", Where: own, Private: credential},
	{Table: "run_tokens", Where: of("run_id", "runs"), Private: credential},
	{Table: "enrollments", Where: own, Private: credential},
	{Table: "revoked_keys", Where: of("box_id", "boxes"), Private: credential},
	{Table: "signins", Where: own, Private: credential},
	{Table: "signin_links", Where: own, Private: credential},
	{Table: "oauth_codes", Where: own, Private: credential},
	{Table: "oauth_devices", Where: own, Private: credential},
	{Table: "action_links", Where: own, Private: credential},
	{Table: "code_host_setups", Where: own, Private: credential},
	{Table: "push_subscriptions", Where: own, Private: credential},
	{Table: "host_tokens", Where: own, Private: credential},
	{Table: "code_hosts", Where: own, Private: credential},

	{Table: "due", Where: "substr(lane, 2) = $1", Private: letters},
	{Table: "idempotency_keys", Where: own, Private: letters},
	{Table: "mails", Where: own, Private: letters},
	{Table: "push_messages", Where: own, Private: letters},
	{Table: "approval_mails", Where: own, Private: letters},
	{Table: "notification_mails", Where: own, Private: letters},
	{Table: "host_intents", Where: own, Private: letters},
	{Table: "reservations", Where: own, Private: letters},
	{Table: "queue_depths", Where: own, Private: derived},
	{Table: "queue_lanes", Where: own, Private: derived},
	{Table: "task_labels", Where: own, Private: derived},

	{Table: "users", Private: ofPeople, Stays: ofPeople},
	{Table: "identities", Private: ofPeople, Stays: ofPeople},
	{Table: "personal_prompts", Private: ofPeople, Stays: ofPeople},
	{Table: "password_links", Private: ofPeople, Stays: ofPeople},
	{Table: "revoked_tokens", Private: credential, Stays: "a box that slept is told that it is revoked; a row says nothing of whose it was"},
	{Table: "signin_codes", Private: ofPeople, Stays: ofPeople},
	{Table: "signin_guesses", Private: ofPeople, Stays: ofPeople},

	{Table: "host_deliveries", Private: byDays, Stays: byDays},
	{Table: "host_redeliveries", Private: ofServer, Stays: ofServer},
	{Table: "host_limits", Private: ofServer, Stays: ofServer},
	{Table: "host_paces", Private: ofServer, Stays: ofServer},
	{Table: "mail_refusals", Private: ofServer, Stays: ofServer},
	{Table: "mail_outages", Private: ofServer, Stays: ofServer},
	{Table: "access_requests", Private: ofServer, Stays: ofServer},
	{Table: "releases", Private: ofServer, Stays: ofServer},
	{Table: "dashboard_syncs", Private: ofServer, Stays: ofServer},
	{Table: "ci_tidying", Private: ofServer, Stays: ofServer},
	{Table: "event_readers", Private: ofServer, Stays: ofServer},
	{Table: "goose_db_version", Private: ofServer, Stays: ofServer},
	{Table: "meta", Private: ofServer, Stays: ofServer},
	{Table: "nodes", Private: ofServer, Stays: ofServer},
	{Table: "node_places", Private: ofServer, Stays: ofServer},
	{Table: "schema_releases", Private: ofServer, Stays: ofServer},
	{Table: "servers", Private: ofServer, Stays: ofServer},
	{Table: "request_counts", Private: ofServer, Stays: ofServer},
}

// hidden are the columns that are in no archive: what is sealed, and what a secret could be tried against.
var hidden = map[string][]string{
	"boxes":         {"token_hash", "last_hash", "nkey", "nats_account", "seal_key"},
	"blockers":      {"answer"},
	"invitations":   {"token_hash"},
	"log_sinks":     {"sealed"},
	"org_sso":       {"sealed"},
	"provider_keys": {"sealed"},
	"secrets":       {"sealed"},
	"sources":       {"sealed"},
	"trackers":      {"sealed"},
	"webhooks":      {"sealed"},
	"runs":          {"secrets_key"},
	"email_routes":  {"digest"},
}

// Parts are the tables of the schema of tx. A table that has no account and of which nothing is said is
// in unknown: whoever adds one says in special what it is.
func Parts(tx *db.Tx) (all []Part, unknown []string, err error) {
	said := map[string]Part{}
	for _, p := range special {
		said[p.Table] = p
	}
	names, err := db.TableNames(tx)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if p, ok := said[name]; ok {
			all = append(all, p)
			continue
		}
		columns, err := db.ColumnNames(tx, name)
		if err != nil {
			return nil, nil, err
		}
		if !slices.Contains(columns, "account_id") {
			unknown = append(unknown, name)
			continue
		}
		all = append(all, Part{Table: name, Where: own})
	}
	return all, unknown, nil
}

// Archived tells whether a column of a table is in archives.
func Archived(table, column string) bool {
	for _, p := range special {
		if p.Table == table && p.Private != "" {
			return false
		}
	}
	return !slices.Contains(hidden[table], column)
}
