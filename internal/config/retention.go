package config

// Ends says what makes rows of a table go.
type Ends string

// What makes rows go.
const (
	Never     Ends = "never"     // they are kept for good
	ByDays    Ends = "days"      // after the days of a setting
	ByItself  Ends = "by itself" // when what they are about is over, in a time that the program has
	ByRequest Ends = "request"   // when somebody deletes what they are, or are part of
)

// Kept says how long the rows of some tables are kept, and why.
type Kept struct {
	Tables  []string
	Ends    Ends
	Setting string // of ByDays
	Why     string
}

// Retention names every table of the schema once. Nothing grows that is not told here.
var Retention = []Kept{
	{[]string{"audit_heads", "operator_trail", "departures"}, Never, "",
		"where each chain of the record ends, every look of an operator, and the proof of each account that was deleted"},
	{[]string{"meta", "goose_db_version", "schema_releases", "event_readers", "event_cursors",
		"ci_tidying"}, Never, "",
		"a few rows of the installation itself"},
	{[]string{"accounts", "users", "identities", "account_floors", "account_quotas", "account_measures",
		"grants", "onboarding",
		"oss_applications", "access_requests", "invitations", "tokens", "enrollments", "boxes",
		"revoked_keys"}, Never, "",
		"who may do what, and who was: the record names them, and a credential that is spent must stay known as spent"},
	{[]string{"payment_customers", "paid_subscriptions", "budgets", "provider_keys", "sessions",
		"session_events", "donations", "donation_uses", "budget_warnings"}, Never, "",
		"the ledger of money: what was spent, over which key, by whom"},
	{[]string{"tasks", "asks", "ask_covers", "plans", "plan_groups", "plan_progress", "plan_fanouts",
		"plan_fanout_tasks", "plan_file_switches",
		"task_labels", "runs", "blockers", "blocker_fields", "escalations", "queue_lanes",
		"queue_depths", "template_lanes"}, Never, "",
		"the work: people read it, and what is done next is decided from it"},
	{[]string{"pulls", "provenances", "pull_actions", "pull_threads", "pull_comments", "merge_batches", "merge_entries",
		"ci_runs", "ci_reports",
		"review_runs", "review_findings", "review_places", "host_reviews", "issue_walks", "issue_handoffs"}, Never, "",
		"what became of changes, and why"},
	{[]string{"repos", "repo_sizes", "repo_sweeps", "repo_creations", "backlog_imports", "kb_indexes", "kb_keepers", "git_homes",
		"code_hosts", "installations",
		"host_owners", "host_heads", "host_commands", "host_redeliveries", "sources", "webhooks", "releases",
		"dashboard_syncs",
		"notification_people", "notification_choices", "notification_mails", "email_route_mails"}, Never, "",
		"what there is, with its state: as many rows as things"},

	{[]string{"audit"}, ByDays, "keep-audit", "the record; a chain says what of it went, and what is left is whole"},
	{[]string{"run_events"}, ByDays, "keep-run-events", "steps of runs, after their end; what a report shows stays for good"},
	{[]string{"notifications"}, ByDays, "keep-notifications", "rows of inboxes, after their last change"},
	{[]string{"digests"}, ByDays, "keep-digests", "digests"},
	{[]string{"artifacts"}, ByDays, "keep-artifacts",
		"artifacts; those of runs by keep-run-artifacts; their bytes go first"},
	{[]string{"webhook_events", "webhook_deliveries"}, ByDays, "keep-webhook-events",
		"until then they can be delivered again"},
	{[]string{"host_deliveries"}, ByDays, "keep-host-deliveries", "a delivery that comes again is known by its row"},
	{[]string{"source_deliveries"}, ByDays, "keep-source-deliveries", "the ledger of each source"},
	{[]string{"mails"}, ByDays, "keep-mails", "mails that were sent or have failed"},

	{[]string{"idempotency_keys", "source_seen"}, ByItself, "", "what comes again within a day or so is known by it"},
	{[]string{"oauth_codes", "oauth_devices", "signins", "signin_codes", "signin_links", "password_links", "action_links",
		"signin_guesses",
		"code_host_setups", "run_tokens", "revoked_tokens"}, ByItself, "", "credentials and links that have expired"},
	{[]string{"due", "approval_mails", "push_messages", "host_intents", "reservations", "budget_stops",
		"box_commands", "servers", "nodes", "node_places", "account_closures",
		"request_counts"}, ByItself, "",
		"what is to be done, and who does it: a row goes when it is done"},
	{[]string{"ci_logs", "ci_failures", "ci_fingerprints", "ci_reruns", "ci_broken_bases", "host_checks",
		"merge_results"}, ByItself, "",
		"evidence about checks, which is old soon"},
	{[]string{"host_limits", "host_paces", "lane_reports", "mail_refusals", "mail_outages", "spend_minutes", "spend_days",
		"webhook_attempts"}, ByItself, "",
		"measurements of the last hours, days and months"},
	{[]string{"kb_proposals", "ssh_joins", "rollouts", "rollout_boxes", "tracker_issues", "payment_events",
		"answers"}, ByItself, "",
		"how something went that is long over"},

	{[]string{"lfs_begun"}, ByItself, "",
		"repositories whose contents came and whose first push never did: a day later"},
	{[]string{"lfs_objects"}, ByItself, "",
		"uploads that were given up; objects of Git LFS that nothing names any more, twice a day"},
	{[]string{"task_deps", "plan_edges", "issues"}, ByRequest, "",
		"the work; a row goes only where somebody takes it back"},
	{[]string{"memberships", "former_members", "box_consents"}, ByRequest, "",
		"who belongs where"},
	{[]string{"secrets", "templates", "schedules", "prices", "prompt_vars", "system_prompts", "personal_prompts",
		"budget_limits",
		"review_rules", "org_sso", "trackers", "email_routes", "log_sinks", "llm_prefs", "host_tokens", "repo_bindings",
		"update_pins", "dashboards", "dashboard_widgets", "push_subscriptions"}, ByRequest, "", "what people have set"},
	{[]string{"kb_pages", "kb_versions", "kb_links", "kb_grams", "kb_terms"}, ByRequest, "",
		"the knowledge base, with 20 versions of a page"},
}
