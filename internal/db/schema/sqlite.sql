-- Written by: go test ./internal/db -run TestNewDatabaseEqualsMigrated -update
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
CREATE TABLE users (
  id              TEXT PRIMARY KEY,
  login           TEXT NOT NULL UNIQUE,
  name            TEXT NOT NULL,
  email           TEXT NOT NULL UNIQUE,
  avatar_url      TEXT NOT NULL DEFAULT '',
  password_hash   TEXT NOT NULL DEFAULT '',
  platform_admin  BOOLEAN NOT NULL DEFAULT FALSE,
  approved_at     BIGINT,
  tos_version     TEXT NOT NULL DEFAULT '',
  tos_accepted_at BIGINT,
  created_at      BIGINT NOT NULL
, last_signed_in_at BIGINT, added_at_once BOOLEAN NOT NULL DEFAULT FALSE);
CREATE TABLE accounts (
  id         TEXT PRIMARY KEY,
  login      TEXT NOT NULL UNIQUE,
  kind       TEXT NOT NULL,
  tier       TEXT NOT NULL,
  seats      BIGINT NOT NULL,
  created_at BIGINT NOT NULL
, spend_cap_micros BIGINT, oss_reviewed_at BIGINT, zone TEXT NOT NULL DEFAULT 'UTC', tier_at BIGINT);
CREATE TABLE memberships (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  role       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, user_id)
);
CREATE INDEX memberships_user ON memberships (user_id);
CREATE TABLE signins (
  hash         TEXT PRIMARY KEY,
  user_id      TEXT NOT NULL REFERENCES users (id),
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  signed_in_at BIGINT NOT NULL,
  last_seen_at BIGINT NOT NULL,
  expires_at   BIGINT NOT NULL
, sso_account_id TEXT);
CREATE INDEX signins_user ON signins (user_id);
CREATE TABLE tokens (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  user_id      TEXT REFERENCES users (id),
  kind         TEXT NOT NULL,
  name         TEXT,
  prefix       TEXT NOT NULL,
  hash         TEXT NOT NULL UNIQUE,
  scopes       TEXT NOT NULL,
  expires_at   BIGINT,
  revoked_at   BIGINT,
  last_used_at BIGINT,
  created_at   BIGINT NOT NULL
, vouched BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX tokens_account ON tokens (account_id, created_at, id);
CREATE TABLE pulls (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  repo_id     TEXT NOT NULL REFERENCES repos (id),
  number      BIGINT NOT NULL,
  title       TEXT NOT NULL,
  body        TEXT NOT NULL,
  url         TEXT NOT NULL,
  state       TEXT NOT NULL,
  head_ref    TEXT NOT NULL,
  base_ref    TEXT NOT NULL,
  head_sha    TEXT NOT NULL,
  base_sha    TEXT NOT NULL,
  merge_sha   TEXT,
  patch_id    TEXT NOT NULL DEFAULT '',
  mergeable   TEXT NOT NULL DEFAULT 'unknown',
  checks      TEXT NOT NULL DEFAULT 'none',
  task_id     TEXT,
  author_kind TEXT NOT NULL,
  merged_by   TEXT,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  merged_at   BIGINT,
  closed_at   BIGINT, babysit TEXT NOT NULL DEFAULT 'off', ci_rounds BIGINT NOT NULL DEFAULT 0, conflict_rounds BIGINT NOT NULL DEFAULT 0, forgiven BIGINT NOT NULL DEFAULT 0, armed_at BIGINT, babysit_task TEXT, looked_sha TEXT NOT NULL DEFAULT '', closed_by TEXT, closed_why TEXT NOT NULL DEFAULT '', abandoned_at BIGINT, needs TEXT NOT NULL DEFAULT '', needs_at BIGINT, attend_at BIGINT NOT NULL DEFAULT 0, round_sha TEXT NOT NULL DEFAULT '', facts_want BIGINT NOT NULL DEFAULT 1, facts_have BIGINT NOT NULL DEFAULT 0, pushed_by TEXT, host_url TEXT NOT NULL DEFAULT '', host_at BIGINT NOT NULL DEFAULT 0, author TEXT NOT NULL DEFAULT '', draft BOOLEAN NOT NULL DEFAULT FALSE, fork BOOLEAN NOT NULL DEFAULT FALSE, labels TEXT NOT NULL DEFAULT '[]', host_checks TEXT NOT NULL DEFAULT '', own_checks TEXT NOT NULL DEFAULT '', change TEXT NOT NULL DEFAULT '', merge_base TEXT NOT NULL DEFAULT '', merge_bases BIGINT NOT NULL DEFAULT 0, carry TEXT NOT NULL DEFAULT '', review TEXT NOT NULL DEFAULT 'none', review_at BIGINT NOT NULL DEFAULT 0, findings BIGINT NOT NULL DEFAULT 0, review_rounds BIGINT NOT NULL DEFAULT 0, watch TEXT NOT NULL DEFAULT '', round_then TEXT NOT NULL DEFAULT '', objections BIGINT NOT NULL DEFAULT 0, remarks BIGINT NOT NULL DEFAULT 0, changed_files BIGINT, added_lines BIGINT, deleted_lines BIGINT, would TEXT, had TEXT NOT NULL DEFAULT '[]', otherwise TEXT NOT NULL DEFAULT '', request_rounds BIGINT NOT NULL DEFAULT 0, checks_hold TEXT NOT NULL DEFAULT '', checks_why TEXT NOT NULL DEFAULT '', armed_why TEXT NOT NULL DEFAULT '', told TEXT NOT NULL DEFAULT '', move_at BIGINT NOT NULL DEFAULT 0, unwanted TEXT, left_out TEXT, round_of TEXT NOT NULL DEFAULT '', round_asked BOOLEAN NOT NULL DEFAULT FALSE, seat_since BIGINT, unreadable BOOLEAN NOT NULL DEFAULT FALSE, version BIGINT NOT NULL DEFAULT 0,
  UNIQUE (repo_id, number)
);
CREATE INDEX pulls_repo ON pulls (repo_id, created_at, id);
CREATE INDEX pulls_account_state ON pulls (account_id, state, created_at, id);
CREATE TABLE pull_actions (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  pr_id        TEXT NOT NULL REFERENCES pulls (id),
  kind         TEXT NOT NULL,
  head_sha     TEXT NOT NULL,
  state        TEXT NOT NULL,
  error        TEXT,
  decided_by   TEXT,
  requested_at BIGINT NOT NULL,
  decided_at   BIGINT,
  expires_at   BIGINT NOT NULL,
  tries        BIGINT NOT NULL DEFAULT 0
, protected TEXT, base_ref TEXT NOT NULL DEFAULT '', merge_base TEXT NOT NULL DEFAULT '', merge_bases BIGINT NOT NULL DEFAULT 0, change TEXT NOT NULL DEFAULT '', patch_id TEXT NOT NULL DEFAULT '', stale_why TEXT NOT NULL DEFAULT '', carried_from TEXT, details TEXT NOT NULL DEFAULT '{}', tidied BOOLEAN NOT NULL DEFAULT FALSE, called BOOLEAN NOT NULL DEFAULT FALSE, claim TEXT NOT NULL DEFAULT '', retry_at BIGINT, due_at BIGINT NOT NULL DEFAULT 253402300799000000, begins_at BIGINT);
CREATE INDEX pull_actions_pr ON pull_actions (pr_id, requested_at);
CREATE INDEX pull_actions_account ON pull_actions (account_id, requested_at, id) WHERE state = 'pending';
CREATE UNIQUE INDEX pull_actions_open ON pull_actions (pr_id, kind) WHERE state IN ('pending', 'approved');
CREATE TABLE ci_runs (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  repo_id     TEXT NOT NULL REFERENCES repos (id),
  pr_id       TEXT REFERENCES pulls (id),
  sha         TEXT NOT NULL,
  command     TEXT NOT NULL,
  status      TEXT NOT NULL,
  task_id     TEXT,
  run_id      TEXT,
  box_id      TEXT,
  exit_code   BIGINT,
  output      TEXT NOT NULL DEFAULT '',
  created_at  BIGINT NOT NULL,
  started_at  BIGINT,
  finished_at BIGINT
);
CREATE INDEX ci_runs_account ON ci_runs (account_id, created_at, id);
CREATE UNIQUE INDEX ci_runs_head ON ci_runs (pr_id, sha) WHERE pr_id IS NOT NULL;
CREATE INDEX ci_runs_task ON ci_runs (task_id);
CREATE TABLE tasks (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id),
  repo_id       TEXT NOT NULL REFERENCES repos (id),
  kind          TEXT NOT NULL,
  sink          TEXT NOT NULL,
  title         TEXT NOT NULL,
  problem       TEXT NOT NULL,
  status        TEXT NOT NULL,
  attempt       BIGINT NOT NULL DEFAULT 0,
  charged       BIGINT NOT NULL DEFAULT 0,
  uncharged     BIGINT NOT NULL DEFAULT 0,
  max_attempts  BIGINT NOT NULL DEFAULT 3,
  failure_kind  TEXT,
  failure       TEXT,
  priority      BIGINT NOT NULL DEFAULT 50,
  stuck         BOOLEAN NOT NULL DEFAULT FALSE,
  not_before    BIGINT NOT NULL DEFAULT 0,
  waiting_deps  BIGINT NOT NULL DEFAULT 0,
  queued_at     BIGINT NOT NULL,
  run_id        TEXT,
  box_id        TEXT,
  branch        TEXT NOT NULL,
  base_sha      TEXT,
  wip_sha       TEXT,
  wip_paths     TEXT NOT NULL DEFAULT '[]',
  wip_at        BIGINT,
  pr_id         TEXT,
  checkout_sha  TEXT,
  files         TEXT NOT NULL DEFAULT '[]',
  labels        TEXT NOT NULL DEFAULT '{}',
  guidance      TEXT,
  template      TEXT NOT NULL,
  command       TEXT NOT NULL DEFAULT '[]',
  confidence    DOUBLE PRECISION NOT NULL DEFAULT 1,
  budget_micros BIGINT,
  result_schema TEXT,
  ask_id        TEXT,
  created_by    TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL,
  claimed_at    BIGINT,
  started_at    BIGINT,
  finished_at   BIGINT
, plan_id TEXT, group_id TEXT, conflict_with TEXT, conflict_paths TEXT NOT NULL DEFAULT '[]', conflict_at BIGINT, stacked_on TEXT, start_sha TEXT, requested_by TEXT, unbound BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX tasks_list ON tasks (account_id, created_at, id);
CREATE INDEX tasks_later ON tasks (account_id, not_before) WHERE status = 'pending' AND not_before > 0;
CREATE INDEX tasks_in_flight ON tasks (account_id, box_id) WHERE status IN ('claimed', 'running');
CREATE TABLE queue_depths (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  pending    BIGINT NOT NULL
, clock BIGINT NOT NULL DEFAULT -50, served_at BIGINT NOT NULL DEFAULT 0);
CREATE TABLE task_deps (
  task_id    TEXT NOT NULL REFERENCES tasks (id),
  depends_on TEXT NOT NULL REFERENCES tasks (id),
  PRIMARY KEY (task_id, depends_on)
);
CREATE INDEX task_deps_up ON task_deps (depends_on);
CREATE TABLE runs (
  id               TEXT PRIMARY KEY,
  account_id       TEXT NOT NULL REFERENCES accounts (id),
  task_id          TEXT NOT NULL REFERENCES tasks (id),
  repo_id          TEXT NOT NULL REFERENCES repos (id),
  attempt          BIGINT NOT NULL,
  box_id           TEXT NOT NULL,
  claim_id         TEXT NOT NULL,
  state            TEXT NOT NULL,
  lease_expires_at BIGINT NOT NULL,
  committed_seq    BIGINT NOT NULL DEFAULT 0,
  isolation        TEXT,
  agent            TEXT NOT NULL,
  agent_version    TEXT,
  template         TEXT NOT NULL,
  model            TEXT NOT NULL DEFAULT '',
  resume_sha       TEXT,
  agent_session    TEXT,
  outcome          TEXT,
  failure_kind     TEXT,
  error            TEXT,
  report           TEXT,
  report_by        TEXT,
  tip              TEXT,
  created_at       BIGINT NOT NULL,
  accepted_at      BIGINT,
  started_at       BIGINT,
  progress_at      BIGINT NOT NULL,
  ended_at         BIGINT
, secrets_key TEXT, halting TEXT NOT NULL DEFAULT '', woken_at BIGINT, event_bytes BIGINT NOT NULL DEFAULT 0, secrets_given BOOLEAN NOT NULL DEFAULT FALSE, isolation_holds TEXT, halting_why TEXT NOT NULL DEFAULT '', activity TEXT, box_right TEXT, consent_by TEXT, consent_at BIGINT, left_out TEXT, halting_until BIGINT, pref_provider TEXT, pref_model TEXT, prompt_sha256 TEXT, events_reaped_at BIGINT);
CREATE INDEX runs_task ON runs (task_id, created_at);
CREATE INDEX runs_lease ON runs (lease_expires_at) WHERE ended_at IS NULL;
CREATE INDEX runs_box ON runs (box_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX runs_live ON runs (task_id) WHERE ended_at IS NULL;
CREATE UNIQUE INDEX runs_claim ON runs (box_id, claim_id);
CREATE TABLE run_events (
  run_id  TEXT NOT NULL,
  seq     BIGINT NOT NULL,
  attempt BIGINT NOT NULL,
  t       BIGINT NOT NULL,
  mono    BIGINT NOT NULL,
  kind    TEXT NOT NULL,
  data    TEXT NOT NULL,
  PRIMARY KEY (run_id, seq)
);
CREATE INDEX run_events_artifacts ON run_events (run_id, seq) WHERE kind = 'artifact.stored';
CREATE TABLE run_tokens (
  hash       TEXT PRIMARY KEY,
  run_id     TEXT NOT NULL REFERENCES runs (id),
  kind       TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT
);
CREATE INDEX run_tokens_run ON run_tokens (run_id);
CREATE TABLE sessions (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id),
  run_id        TEXT,
  task_id       TEXT,
  repo_id       TEXT,
  trigger       TEXT NOT NULL,
  kind          TEXT NOT NULL,
  provider      TEXT,
  model         TEXT,
  outcome       TEXT,
  calls         BIGINT NOT NULL DEFAULT 0,
  unpriced      BIGINT NOT NULL DEFAULT 0,
  cost_micros   BIGINT,
  input_tokens  BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  cache_tokens  BIGINT NOT NULL DEFAULT 0,
  started_at    BIGINT NOT NULL,
  ended_at      BIGINT
, requested_by TEXT, policy TEXT);
CREATE INDEX sessions_account ON sessions (account_id, started_at, id);
CREATE TABLE escalations (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  repo_id     TEXT REFERENCES repos (id),
  category    TEXT NOT NULL,
  title       TEXT NOT NULL,
  body        TEXT NOT NULL,
  reason      TEXT NOT NULL,
  created_by  TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  resolved_at BIGINT
, ask_id TEXT, resolved_by TEXT, note TEXT, pr_id TEXT, task_id TEXT, issue_id TEXT);
CREATE INDEX escalations_account ON escalations (account_id, created_at, id);
CREATE TABLE boxes (
  id               TEXT PRIMARY KEY,
  account_id       TEXT NOT NULL REFERENCES accounts (id),
  name             TEXT NOT NULL,
  owner_target     TEXT NOT NULL,
  owner_id         TEXT,
  state            TEXT NOT NULL,
  nkey             TEXT NOT NULL,
  token_hash       TEXT NOT NULL UNIQUE,
  token_expires_at BIGINT NOT NULL,
  -- The token before, good until its successor is used for the first time.
  last_hash        TEXT UNIQUE,
  last_expires_at  BIGINT,
  rotate           BOOLEAN NOT NULL DEFAULT FALSE,
  version          TEXT NOT NULL DEFAULT '',
  os               TEXT NOT NULL DEFAULT '',
  arch             TEXT NOT NULL DEFAULT '',
  slots            BIGINT NOT NULL,
  labels           TEXT NOT NULL DEFAULT '{}',
  -- What the operator fixed at enrollment; what the box reports gives way.
  set_slots        BIGINT,
  set_labels       TEXT NOT NULL DEFAULT '{}',
  agents           TEXT NOT NULL DEFAULT '[]',
  isolation        TEXT NOT NULL DEFAULT '[]',
  presence         TEXT NOT NULL DEFAULT 'offline',
  telemetry        TEXT NOT NULL DEFAULT '{}',
  last_beat_at     BIGINT,
  briefing         TEXT,
  hardening        TEXT,
  -- Until then one node is handing the box's commands to the bus.
  created_at       BIGINT NOT NULL,
  revoked_at       BIGINT,
  retired_at       BIGINT
, unfit TEXT, nats_account TEXT, seal_key TEXT NOT NULL DEFAULT '', isolation_holds TEXT NOT NULL DEFAULT '{}', retire_at BIGINT, retire_by TEXT, unfit_for TEXT);
CREATE INDEX boxes_account ON boxes (account_id, created_at, id);
CREATE UNIQUE INDEX boxes_nkey ON boxes (nkey) WHERE nkey <> '';
CREATE INDEX boxes_beat ON boxes (last_beat_at) WHERE presence <> 'offline';
CREATE TABLE revoked_keys (
  nkey       TEXT PRIMARY KEY,
  box_id     TEXT NOT NULL REFERENCES boxes (id),
  revoked_at BIGINT NOT NULL,
  account TEXT);
CREATE TABLE enrollments (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  hash        TEXT NOT NULL UNIQUE,
  name        TEXT NOT NULL DEFAULT '',
  slots       BIGINT,
  labels      TEXT NOT NULL DEFAULT '{}',
  created_by  TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  redeemed_at BIGINT,
  box_id      TEXT
);
CREATE TABLE box_commands (
  id         TEXT PRIMARY KEY,
  box_id     TEXT NOT NULL,
  place      TEXT NOT NULL,
  kind       TEXT NOT NULL,
  payload    TEXT NOT NULL,
  created_at BIGINT NOT NULL
, account_id TEXT);
CREATE INDEX box_commands_box ON box_commands (box_id, place);
CREATE TABLE provider_keys (
  id               TEXT PRIMARY KEY,
  account_id       TEXT NOT NULL REFERENCES accounts (id),
  provider         TEXT NOT NULL,
  label            TEXT NOT NULL,
  base_url         TEXT NOT NULL DEFAULT '',
  masked           TEXT NOT NULL,
  sealed           TEXT NOT NULL,
  kind             TEXT NOT NULL,
  capacity         BIGINT,
  priority         BIGINT NOT NULL DEFAULT 100,
  status           TEXT NOT NULL DEFAULT 'unverified',
  last_verified_at BIGINT,
  last_error       TEXT,
  created_at       BIGINT NOT NULL,
  deleted_at       BIGINT
, price TEXT, user_id TEXT NOT NULL DEFAULT '', version BIGINT NOT NULL DEFAULT 1, rest_until BIGINT, rest_since BIGINT, rest_why TEXT NOT NULL DEFAULT '', rests BIGINT NOT NULL DEFAULT 0, slips BIGINT NOT NULL DEFAULT 0, probe_until BIGINT, health_seq BIGINT NOT NULL DEFAULT 0);
CREATE INDEX provider_keys_account ON provider_keys (account_id, priority, created_at, id);
CREATE TABLE templates (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  name       TEXT NOT NULL,
  body       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, name)
);
CREATE TABLE audit (
  id         TEXT PRIMARY KEY,
  account_id TEXT,
  at         BIGINT NOT NULL,
  actor      TEXT NOT NULL,
  kind       TEXT NOT NULL,
  object     TEXT NOT NULL,
  repo_id    TEXT,
  request_id TEXT NOT NULL DEFAULT '',
  data       TEXT NOT NULL
, seq BIGINT NOT NULL DEFAULT 0, prev_hash TEXT NOT NULL DEFAULT '', hash TEXT NOT NULL DEFAULT '');
CREATE TABLE mails (
  id         TEXT PRIMARY KEY,
  recipient  TEXT NOT NULL,
  subject    TEXT NOT NULL,
  sealed     TEXT NOT NULL,
  state      TEXT NOT NULL,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT NOT NULL,
  last_error TEXT,
  created_at BIGINT NOT NULL,
  sent_at    BIGINT
, failures BIGINT NOT NULL DEFAULT 0, wanted_at BIGINT NOT NULL DEFAULT 0, leased_until BIGINT NOT NULL DEFAULT 0, notice BIGINT NOT NULL DEFAULT 0, account_id TEXT NOT NULL DEFAULT '', user_id TEXT NOT NULL DEFAULT '');
CREATE INDEX mails_due ON mails (due_at) WHERE state = 'due';
CREATE TABLE invitations (
  id          TEXT PRIMARY KEY,
  kind        TEXT NOT NULL,
  account_id  TEXT REFERENCES accounts (id),
  email       TEXT NOT NULL,
  role        TEXT,
  bundle      TEXT NOT NULL DEFAULT '{}',
  token_hash  TEXT NOT NULL UNIQUE,
  invited_by  TEXT,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  accepted_at BIGINT,
  accepted_by TEXT,
  revoked_at  BIGINT
, login TEXT NOT NULL DEFAULT '', user_id TEXT);
CREATE INDEX invitations_kind ON invitations (kind, account_id, created_at, id);
CREATE INDEX invitations_email ON invitations (email);
CREATE TABLE access_requests (
  id          TEXT PRIMARY KEY,
  email       TEXT NOT NULL,
  name        TEXT NOT NULL,
  org         TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  invited_at  BIGINT,
  declined_at BIGINT,
  decided_by  TEXT
);
CREATE UNIQUE INDEX access_requests_live ON access_requests (email) WHERE declined_at IS NULL;
CREATE INDEX access_requests_created ON access_requests (created_at, id);
CREATE TABLE oauth_codes (
  hash       TEXT PRIMARY KEY,
  ticket     TEXT NOT NULL UNIQUE, -- the consent it came from: one code each
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  client     TEXT NOT NULL,        -- hash of the client_id
  name       TEXT NOT NULL,
  redirect   TEXT NOT NULL,
  challenge  TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  token_id   TEXT                  -- what the code was exchanged for
, vouched BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at);
CREATE TABLE oauth_devices (
  hash       TEXT PRIMARY KEY,     -- of the device code
  user_code  TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  asked      TEXT NOT NULL,        -- scopes; [] is all that the approver may give
  expires_at BIGINT NOT NULL,
  polled_at  BIGINT,
  decision   TEXT NOT NULL,        -- pending, approved, denied
  account_id TEXT REFERENCES accounts (id),
  user_id    TEXT REFERENCES users (id),
  scopes     TEXT,                 -- approved
  token_id   TEXT
, vouched BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX oauth_devices_expiry ON oauth_devices (expires_at);
CREATE UNIQUE INDEX audit_chain ON audit (account_id, seq) WHERE seq > 0;
CREATE TABLE audit_heads (
  account_id TEXT PRIMARY KEY,
  seq        BIGINT NOT NULL,
  hash       TEXT NOT NULL
, cut_seq BIGINT NOT NULL DEFAULT 0, cut_hash TEXT NOT NULL DEFAULT '', cut_told BIGINT NOT NULL DEFAULT 0);
CREATE TABLE operator_trail (
  id         TEXT PRIMARY KEY,
  at         BIGINT NOT NULL,
  actor      TEXT NOT NULL,
  capability TEXT NOT NULL,
  account_id TEXT,
  user_id    TEXT,
  run_id     TEXT,
  request_id TEXT NOT NULL
);
CREATE INDEX accounts_created ON accounts (created_at, id);
CREATE INDEX users_created ON users (created_at, id);
CREATE TABLE grants (
  id         TEXT PRIMARY KEY,
  account_id TEXT REFERENCES accounts (id),
  user_id    TEXT REFERENCES users (id),
  ai_devs    BIGINT NOT NULL,
  reason     TEXT NOT NULL,
  issued_by  TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  revoked_by TEXT
);
CREATE INDEX grants_account ON grants (account_id, created_at, id) WHERE account_id IS NOT NULL;
CREATE INDEX grants_user ON grants (user_id, created_at, id) WHERE user_id IS NOT NULL;
CREATE TABLE oss_applications (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  project_url TEXT NOT NULL,
  statement   TEXT NOT NULL,
  state       TEXT NOT NULL,
  note        TEXT,
  applied_by  TEXT REFERENCES users (id),
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  decided_at  BIGINT
);
CREATE INDEX oss_applications_account ON oss_applications (account_id, created_at, id);
CREATE UNIQUE INDEX oss_applications_open ON oss_applications (account_id) WHERE state = 'pending';
CREATE TABLE onboarding (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  event      TEXT NOT NULL,
  at         BIGINT NOT NULL,
  PRIMARY KEY (account_id, event)
);
CREATE TABLE idempotency_keys (
  account_id   TEXT NOT NULL,
  key          TEXT NOT NULL,
  print        TEXT NOT NULL,    -- of what the key is bound to
  claim        TEXT NOT NULL,    -- who answers, or answered
  effect       BOOLEAN NOT NULL, -- the claim has changed something
  status       BIGINT NOT NULL,  -- of the answer; 0 while there is none
  content_type TEXT NOT NULL,
  body         BYTEA NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
CREATE TABLE signin_codes (
  email      TEXT PRIMARY KEY,
  code       TEXT NOT NULL,             -- keyed digest
  tries      BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,           -- 0: it was used
  sent       BIGINT NOT NULL,           -- codes since window_at
  window_at  BIGINT NOT NULL
);
CREATE INDEX signin_codes_window ON signin_codes (window_at);
CREATE TABLE identities (
  issuer     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  user_id    TEXT NOT NULL REFERENCES users (id),
  created_at BIGINT NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);
CREATE TABLE org_sso (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  issuer     TEXT NOT NULL,
  client_id  TEXT NOT NULL,
  sealed     TEXT NOT NULL,
  domains    TEXT NOT NULL,
  role       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE TABLE asks (
  id                TEXT PRIMARY KEY,
  account_id        TEXT NOT NULL REFERENCES accounts (id),
  repo_id           TEXT REFERENCES repos (id),
  -- The ids of the repositories that a verdict may reach; [] is all of the
  -- account's.
  reach             TEXT NOT NULL,
  title             TEXT NOT NULL,
  body              TEXT NOT NULL,
  source            TEXT NOT NULL,
  labels            TEXT NOT NULL,
  dedupe_key        TEXT,
  -- The key within the room of whoever chose it: nobody files under the keys
  -- of somebody else.
  dedupe            TEXT,
  state             TEXT NOT NULL,
  verdict           TEXT,
  escalation_reason TEXT,
  filed_by          TEXT NOT NULL,
  filer_id          TEXT,
  -- What the filer was allowed when filing, and so the most that a verdict is.
  scopes            TEXT NOT NULL,
  run_id            TEXT,
  -- How many asks stand between this one and a person.
  depth             BIGINT NOT NULL,
  -- From then on the judge may look at it; a node that has it moves this on.
  claim             TEXT,
  tries             BIGINT NOT NULL DEFAULT 0,
  session_id        TEXT,
  created_at        BIGINT NOT NULL,
  triaged_at        BIGINT
, requested_by TEXT, count BIGINT NOT NULL DEFAULT 1, last_seen_at BIGINT, strangers BOOLEAN NOT NULL DEFAULT FALSE, approved_by TEXT, budget_micros BIGINT, from_task TEXT, minted_micros BIGINT NOT NULL DEFAULT 0, issue_id TEXT, issue_url TEXT, due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE INDEX asks_list ON asks (account_id, created_at, id);
CREATE INDEX asks_state ON asks (account_id, state, created_at, id);
CREATE INDEX asks_repo ON asks (repo_id, created_at, id) WHERE repo_id IS NOT NULL;
CREATE UNIQUE INDEX asks_dedupe ON asks (account_id, dedupe);
CREATE INDEX asks_run ON asks (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX escalations_open ON escalations (account_id, created_at, id) WHERE resolved_at IS NULL;
CREATE INDEX escalations_ask ON escalations (ask_id) WHERE ask_id IS NOT NULL;
CREATE INDEX tasks_plan ON tasks (plan_id, created_at, id) WHERE plan_id IS NOT NULL;
CREATE INDEX tasks_pull ON tasks (pr_id) WHERE pr_id IS NOT NULL;
CREATE TABLE plans (
  id             TEXT PRIMARY KEY,
  account_id     TEXT NOT NULL REFERENCES accounts (id),
  repo_id        TEXT NOT NULL REFERENCES repos (id),
  title          TEXT NOT NULL,
  overview       TEXT NOT NULL,
  source         TEXT NOT NULL,
  dir            TEXT,
  revision       BIGINT NOT NULL,
  digest         TEXT NOT NULL DEFAULT '',
  commit_sha     TEXT,
  hold           BOOLEAN NOT NULL,
  scout_task_id  TEXT,
  ask_id         TEXT,
  note           TEXT,
  -- What the first approval answered; a later one answers the same.
  approved_tasks TEXT,
  approved_at    BIGINT,
  cancelled_at   BIGINT,
  failed_at      BIGINT,
  created_by     TEXT NOT NULL,
  created_at     BIGINT NOT NULL
, requested_by TEXT);
CREATE UNIQUE INDEX plans_dir ON plans (account_id, repo_id, dir, revision) WHERE dir IS NOT NULL;
CREATE TABLE plan_progress (
  plan_id          TEXT PRIMARY KEY REFERENCES plans (id),
  account_id       TEXT NOT NULL REFERENCES accounts (id),
  repo_id          TEXT NOT NULL REFERENCES repos (id),
  status           TEXT NOT NULL,
  bucket           TEXT NOT NULL,
  merged           BIGINT NOT NULL DEFAULT 0,
  total            BIGINT NOT NULL DEFAULT 0,
  held_count       BIGINT NOT NULL DEFAULT 0,
  last_activity_at BIGINT NOT NULL
);
CREATE INDEX plan_progress_list ON plan_progress (account_id, last_activity_at, plan_id);
CREATE INDEX plan_progress_bucket ON plan_progress (account_id, bucket, last_activity_at, plan_id);
CREATE INDEX plan_progress_repo ON plan_progress (account_id, repo_id, last_activity_at, plan_id);
CREATE TABLE plan_groups (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  plan_id    TEXT NOT NULL REFERENCES plans (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  place      BIGINT NOT NULL,
  slug       TEXT NOT NULL,
  title      TEXT NOT NULL,
  problem    TEXT NOT NULL,
  files      TEXT NOT NULL,
  template   TEXT NOT NULL DEFAULT '',
  -- '' while the tasks say how it is; stopped or superseded for good.
  closed     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX plan_groups_plan ON plan_groups (plan_id, place, id);
CREATE TABLE plan_edges (
  group_id    TEXT NOT NULL REFERENCES plan_groups (id),
  upstream_id TEXT NOT NULL REFERENCES plan_groups (id),
  plan_id     TEXT NOT NULL REFERENCES plans (id),
  kind        TEXT NOT NULL,
  PRIMARY KEY (group_id, upstream_id)
);
CREATE INDEX plan_edges_plan ON plan_edges (plan_id);
CREATE INDEX plan_edges_upstream ON plan_edges (upstream_id);
CREATE TABLE plan_fanouts (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  ask        TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE TABLE plan_fanout_tasks (
  fanout_id TEXT NOT NULL REFERENCES plan_fanouts (id),
  place     BIGINT NOT NULL,
  task_id   TEXT NOT NULL REFERENCES tasks (id),
  PRIMARY KEY (fanout_id, place)
);
CREATE TABLE plan_file_switches (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  enabled    BOOLEAN NOT NULL
);
CREATE TABLE secrets (
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  repo_id     TEXT NOT NULL,   -- '' is the account's own vault
  name        TEXT NOT NULL,
  environment TEXT NOT NULL,   -- '' is none in particular
  sealed      TEXT NOT NULL,
  size        BIGINT NOT NULL, -- bytes of the value
  delivery    TEXT NOT NULL,   -- env, broker
  hosts       TEXT NOT NULL,   -- JSON list
  header      TEXT NOT NULL,
  prefix      TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  updated_by  TEXT NOT NULL,
  PRIMARY KEY (account_id, repo_id, environment, name)
);
CREATE TABLE blockers (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  task_id    TEXT NOT NULL REFERENCES tasks (id),
  run_id     TEXT NOT NULL,
  declared   TEXT NOT NULL,    -- the run's own name for it
  kind       TEXT NOT NULL,    -- missing_credential, missing_access, decision
  question   TEXT NOT NULL,
  state      TEXT NOT NULL,    -- open, answered, submitted, withdrawn, expired
  answer     TEXT,             -- sealed
  closed_at  BIGINT,
  closed_by  TEXT,
  created_at BIGINT NOT NULL,
  UNIQUE (run_id, declared)
);
CREATE INDEX blockers_all ON blockers (account_id, created_at, id);
CREATE INDEX blockers_task ON blockers (task_id);
CREATE TABLE blocker_fields (
  blocker_id  TEXT NOT NULL REFERENCES blockers (id),
  name        TEXT NOT NULL,   -- of an MCP server: mcp:<server>
  position    BIGINT NOT NULL,
  kind        TEXT NOT NULL,   -- env_secret, service_url, mcp_server, oauth_connection
  environment TEXT NOT NULL,   -- '' is none
  description TEXT NOT NULL,
  landed_at   BIGINT,
  landed_by   TEXT, url TEXT, transport TEXT,
  PRIMARY KEY (blocker_id, name)
);
CREATE TABLE prompt_vars (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL,    -- account, repo, template
  ref        TEXT NOT NULL,    -- id of the repository, name of the template, '' for the account
  key        TEXT NOT NULL,
  value      TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, scope, ref, key)
);
CREATE TABLE system_prompts (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL,    -- account, repo, template
  ref        TEXT NOT NULL,
  prompt     TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  updated_by TEXT NOT NULL,
  PRIMARY KEY (account_id, scope, ref)
);
CREATE TABLE personal_prompts (
  user_id    TEXT PRIMARY KEY REFERENCES users (id),
  prompt     TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX tasks_ready ON tasks (account_id, repo_id, template, priority, created_at, id)
  WHERE status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL;
CREATE INDEX tasks_behind ON tasks (conflict_with) WHERE conflict_with IS NOT NULL;
CREATE INDEX tasks_open ON tasks (repo_id, claimed_at) WHERE status IN ('claimed', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable');
CREATE INDEX tasks_status ON tasks (account_id, status, created_at, id);
CREATE TABLE queue_lanes (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  template   TEXT NOT NULL, -- '' for checks, which need none
  priority   BIGINT NOT NULL,
  ready      BIGINT NOT NULL, -- how many tasks
  place      BIGINT NOT NULL,
  head_at    BIGINT NOT NULL, -- when its oldest task was made, or a bit earlier
  PRIMARY KEY (account_id, repo_id, template, priority)
);
CREATE INDEX queue_lanes_next ON queue_lanes (account_id, place, head_at) WHERE ready > 0;
CREATE INDEX queue_depths_next ON queue_depths (served_at, account_id) WHERE pending > 0;
CREATE TABLE task_labels (
  account_id TEXT NOT NULL,
  name       TEXT NOT NULL,
  value      TEXT NOT NULL,
  created_at BIGINT NOT NULL, -- of the task
  task_id    TEXT NOT NULL REFERENCES tasks (id),
  PRIMARY KEY (account_id, name, value, created_at, task_id)
);
CREATE INDEX run_events_messages ON run_events (run_id, seq) WHERE kind = 'user.message';
CREATE INDEX run_events_declared ON run_events (run_id, seq) WHERE kind IN ('ask.filed', 'blocker.declared');
CREATE TABLE budgets (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL,
  ref        TEXT NOT NULL,
  period     TEXT NOT NULL,
  reserved   BIGINT NOT NULL DEFAULT 0,
  spent      BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, scope, ref, period)
);
CREATE INDEX budgets_period ON budgets (account_id, period, scope, ref);
CREATE TABLE budget_limits (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL,
  ref        TEXT NOT NULL,
  micros     BIGINT NOT NULL,
  PRIMARY KEY (account_id, scope, ref)
);
CREATE TABLE reservations (
  session_id TEXT NOT NULL,
  node       TEXT NOT NULL,
  account_id TEXT NOT NULL,
  amount     BIGINT NOT NULL,
  used       BIGINT NOT NULL DEFAULT 0,
  meters     TEXT NOT NULL,
  expires_at BIGINT NOT NULL, written_off BOOLEAN NOT NULL DEFAULT FALSE,
  PRIMARY KEY (session_id, node)
);
CREATE INDEX reservations_node ON reservations (node);
CREATE INDEX reservations_due ON reservations (expires_at);
CREATE TABLE spend_minutes (
  account_id  TEXT NOT NULL,
  minute      BIGINT NOT NULL,
  session_id  TEXT NOT NULL,
  calls       BIGINT NOT NULL,
  unpriced    BIGINT NOT NULL,
  cost_micros BIGINT,
  PRIMARY KEY (account_id, minute, session_id)
);
CREATE INDEX pulls_merged ON pulls (account_id, merged_at) WHERE merged_at IS NOT NULL;
CREATE TABLE session_events (
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq        BIGINT NOT NULL,
  at         BIGINT NOT NULL,
  kind       TEXT NOT NULL,
  data       TEXT NOT NULL,
  PRIMARY KEY (session_id, seq)
);
CREATE INDEX pulls_babysit ON pulls (updated_at) WHERE babysit = 'watching' AND state = 'open';
CREATE TABLE backlog_imports (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT NOT NULL REFERENCES repos (id),
  state        TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  -- From then on a node may take it up; the one that has it moves this on.
  claim        TEXT,
  tries        BIGINT NOT NULL DEFAULT 0,
  filed        BIGINT NOT NULL DEFAULT 0,
  created_at   BIGINT NOT NULL,
  finished_at  BIGINT
, due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE UNIQUE INDEX backlog_imports_open ON backlog_imports (repo_id) WHERE state IN ('queued', 'running');
CREATE INDEX backlog_imports_account ON backlog_imports (account_id, repo_id, created_at);
CREATE INDEX ci_runs_open ON ci_runs (task_id) WHERE finished_at IS NULL;
CREATE INDEX runs_cut ON runs (ended_at) WHERE outcome IN ('lost', 'interrupted');
CREATE INDEX tasks_waiting ON tasks (account_id, status, created_at, id)
  WHERE status = 'pending' AND (waiting_deps > 0 OR not_before > 0 OR conflict_with IS NOT NULL);
CREATE UNIQUE INDEX boxes_nats_account ON boxes (nats_account);
CREATE TABLE account_floors (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  floors     TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  updated_by TEXT NOT NULL
, outside_boxes BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX pulls_unlooked ON pulls (updated_at) WHERE state = 'open' AND looked_sha <> head_sha;
CREATE TABLE signin_guesses (
  who      TEXT PRIMARY KEY,
  failures BIGINT NOT NULL,
  next_at  BIGINT NOT NULL,
  last_at  BIGINT NOT NULL,
  told_at  BIGINT NOT NULL DEFAULT 0,
  good_at  BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX signin_guesses_last ON signin_guesses (last_at);
CREATE INDEX revoked_keys_at ON revoked_keys (revoked_at);
CREATE INDEX pulls_facts ON pulls (updated_at) WHERE state = 'open' AND facts_have < facts_want;
CREATE INDEX pulls_abandoned ON pulls (abandoned_at) WHERE state = 'open' AND abandoned_at IS NOT NULL;
CREATE INDEX escalations_pull ON escalations (pr_id) WHERE pr_id IS NOT NULL AND resolved_at IS NULL;
CREATE INDEX boxes_retire ON boxes (retire_at) WHERE retire_at IS NOT NULL;
CREATE INDEX tasks_ready_by ON tasks (account_id, requested_by, repo_id, template, priority, created_at, id)
  WHERE status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL;
CREATE TABLE "budget_stops" (
  id         TEXT PRIMARY KEY, -- of the task, or of the session if it has none
  account_id TEXT NOT NULL,
  task_id    TEXT REFERENCES tasks (id),
  session_id TEXT,             -- the one that was stopped; NULL: before it was noted
  reason     TEXT NOT NULL,    -- budget_exhausted, unpriced_model
  scope      TEXT NOT NULL,
  ref        TEXT NOT NULL,
  period     TEXT NOT NULL,
  micros     BIGINT NOT NULL,
  provider   TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  key_id     TEXT NOT NULL DEFAULT '',
  at         BIGINT NOT NULL DEFAULT 0
, need BIGINT NOT NULL DEFAULT 0);
CREATE INDEX budget_stops_meter ON budget_stops (account_id, scope, ref);
CREATE INDEX budget_stops_task ON budget_stops (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX tasks_broke ON tasks (id) WHERE status = 'held' AND failure_kind IN ('budget_exhausted', 'unpriced_model');
CREATE TABLE prices (
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  provider    TEXT NOT NULL,
  model       TEXT NOT NULL,
  input       BIGINT NOT NULL,
  output      BIGINT NOT NULL,
  cache_read  BIGINT NOT NULL,
  cache_write BIGINT NOT NULL,
  created_at  BIGINT NOT NULL,
  PRIMARY KEY (account_id, provider, model)
);
CREATE TABLE servers (
  id         TEXT PRIMARY KEY,
  cluster    BOOLEAN NOT NULL,            -- it is configured to share the database
  name       TEXT NOT NULL,               -- for people
  process    TEXT NOT NULL,               -- tells, on its machine, whether it runs
  beats      BIGINT NOT NULL DEFAULT 0,
  started_at BIGINT NOT NULL
);
CREATE TABLE event_readers (
  name  TEXT PRIMARY KEY,
  since BIGINT NOT NULL
);
CREATE TABLE event_cursors (
  reader     TEXT NOT NULL REFERENCES event_readers (name),
  account_id TEXT NOT NULL,
  seq        BIGINT NOT NULL,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT,
  PRIMARY KEY (reader, account_id)
);
CREATE TABLE repos (
  id                   TEXT PRIMARY KEY,
  account_id           TEXT NOT NULL REFERENCES accounts (id),
  owner                TEXT NOT NULL,
  name                 TEXT NOT NULL,
  host                 TEXT NOT NULL,
  default_branch       TEXT NOT NULL,
  private              BOOLEAN NOT NULL,
  enabled              BOOLEAN NOT NULL,
  donations_enabled    BOOLEAN NOT NULL DEFAULT FALSE,
  ai_first             BOOLEAN NOT NULL DEFAULT FALSE,
  canary_enabled       BOOLEAN NOT NULL DEFAULT FALSE,
  public_stats_enabled BOOLEAN NOT NULL DEFAULT FALSE,
  policy_sha           TEXT NOT NULL DEFAULT '',
  policy_yml           TEXT,
  policy_error         TEXT,
  last_activity_at     BIGINT,
  created_at           BIGINT NOT NULL,
  refresh_due          BIGINT,
  host_repo_id         TEXT NOT NULL DEFAULT ''
, installation_id TEXT NOT NULL DEFAULT '', archived BOOLEAN NOT NULL DEFAULT FALSE, gone_at BIGINT, enabled_before BOOLEAN NOT NULL DEFAULT FALSE, gone_why TEXT NOT NULL DEFAULT '', lacks TEXT NOT NULL DEFAULT '', in_the_way TEXT NOT NULL DEFAULT '', unborn BOOLEAN NOT NULL DEFAULT FALSE, policy_near TEXT NOT NULL DEFAULT '', gitmodules TEXT, disabled_at BIGINT, private_at BIGINT, lacks_at BIGINT, head_sha TEXT NOT NULL DEFAULT '');
CREATE INDEX repos_account ON repos (account_id, created_at, id);
CREATE INDEX repos_refresh ON repos (refresh_due) WHERE refresh_due IS NOT NULL;
CREATE UNIQUE INDEX repos_place ON repos (host, owner, name);
CREATE UNIQUE INDEX repos_host_repo_id ON repos (host, host_repo_id) WHERE host_repo_id <> '';
CREATE UNIQUE INDEX repos_enabled ON repos (account_id, owner, name) WHERE enabled;
CREATE TABLE host_intents (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  object     TEXT NOT NULL,
  kind       TEXT NOT NULL,
  args       TEXT NOT NULL,
  rank       BIGINT NOT NULL,
  state      TEXT NOT NULL,
  tries      BIGINT NOT NULL DEFAULT 0,
  limited    BOOLEAN NOT NULL DEFAULT FALSE,
  error      TEXT,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT
, limited_until BIGINT, due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE INDEX host_intents_line ON host_intents (repo_id, object, id) WHERE ended_at IS NULL;
CREATE INDEX host_intents_ended ON host_intents (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE code_hosts (
  name        TEXT PRIMARY KEY,
  address     TEXT NOT NULL,
  app_id      TEXT NOT NULL,
  slug        TEXT NOT NULL,
  client_id   TEXT NOT NULL,
  owner_id    TEXT NOT NULL,
  owner_login TEXT NOT NULL,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  switches    TEXT NOT NULL,
  sealed      TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  created_by  TEXT NOT NULL
);
CREATE TABLE code_host_setups (
  hash       TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  address    TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL,
  switches   TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE TABLE installations (
  host         TEXT NOT NULL,
  id           TEXT NOT NULL,
  owner_id     TEXT NOT NULL,
  owner_login  TEXT NOT NULL,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  permissions  TEXT NOT NULL,
  suspended_at BIGINT,
  gone_at      BIGINT,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  PRIMARY KEY (host, id)
);
CREATE INDEX installations_account ON installations (account_id);
CREATE TABLE host_owners (
  host       TEXT NOT NULL,
  owner_id   TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  PRIMARY KEY (host, owner_id)
);
CREATE TABLE host_deliveries (
  host        TEXT NOT NULL,
  guid        TEXT NOT NULL,
  kind        TEXT NOT NULL,
  body        BYTEA,
  bytes       BIGINT NOT NULL,
  state       TEXT NOT NULL,
  tries       BIGINT NOT NULL DEFAULT 0,
  error       TEXT,
  received_at BIGINT NOT NULL,
  ended_at    BIGINT,
  PRIMARY KEY (host, guid)
);
CREATE INDEX host_deliveries_received ON host_deliveries (received_at);
CREATE TABLE repo_sweeps (
  repo_id TEXT PRIMARY KEY REFERENCES repos (id),
  marks   TEXT NOT NULL,
  due_at  BIGINT NOT NULL
);
CREATE INDEX repo_sweeps_due ON repo_sweeps (due_at);
CREATE TABLE host_redeliveries (
  host   TEXT PRIMARY KEY,
  due_at BIGINT NOT NULL
);
CREATE INDEX pulls_open_head ON pulls (repo_id, head_ref) WHERE state = 'open';
CREATE INDEX pulls_head_sha ON pulls (repo_id, head_sha) WHERE state = 'open';
CREATE TABLE host_heads (
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  sha        TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  base_ref   TEXT NOT NULL,
  tag        TEXT NOT NULL DEFAULT '',
  result     TEXT NOT NULL DEFAULT 'pending',
  why        TEXT NOT NULL DEFAULT '',
  settle_at  BIGINT NOT NULL,
  due_at     BIGINT,
  want       BIGINT NOT NULL DEFAULT 1,
  have       BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL, side TEXT NOT NULL DEFAULT 'pull', pr_id TEXT NOT NULL DEFAULT '', hold TEXT NOT NULL DEFAULT '', open BOOLEAN NOT NULL DEFAULT FALSE,
  PRIMARY KEY (repo_id, sha)
);
CREATE INDEX host_heads_due ON host_heads (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE host_checks (
  repo_id    TEXT NOT NULL,
  sha        TEXT NOT NULL,
  source     TEXT NOT NULL,
  name       TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  own        BOOLEAN NOT NULL,
  required   BOOLEAN NOT NULL,
  state      TEXT NOT NULL,
  conclusion TEXT NOT NULL,
  job        TEXT NOT NULL,
  workflow   TEXT NOT NULL,
  attempt    BIGINT NOT NULL,
  url        TEXT NOT NULL,
  log        TEXT,
  started_at BIGINT,
  ended_at   BIGINT,
  PRIMARY KEY (repo_id, sha, source, name),
  FOREIGN KEY (repo_id, sha) REFERENCES host_heads (repo_id, sha)
);
CREATE TABLE ci_logs (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  run_id     TEXT NOT NULL UNIQUE,
  size       BIGINT NOT NULL DEFAULT 0,
  kept_at    BIGINT,
  tries      BIGINT NOT NULL DEFAULT 0,
  expires_at BIGINT NOT NULL
, due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE TABLE approval_mails (
  action_id  TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  tries      BIGINT NOT NULL DEFAULT 0, due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE TABLE action_links (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  action_id   TEXT NOT NULL,
  user_id     TEXT NOT NULL REFERENCES users (id),
  verb        TEXT NOT NULL,
  head_sha    TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  redeemed_at BIGINT
);
CREATE INDEX action_links_expired ON action_links (expires_at);
CREATE TABLE review_runs (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  repo_id TEXT NOT NULL,
  pr_id TEXT NOT NULL,
  head_sha TEXT NOT NULL,
  since_sha TEXT NOT NULL DEFAULT '',  -- the head that was reviewed before; '': the whole change
  merge_base TEXT NOT NULL,
  change TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL,
  template TEXT NOT NULL DEFAULT '',   -- of the finder
  task_id TEXT,                        -- the finder's
  verify_task_id TEXT,                 -- the verifier's
  blind TEXT NOT NULL DEFAULT '',      -- why there was no model
  note TEXT NOT NULL DEFAULT '',       -- why nothing was reviewed, or why it failed
  verdict TEXT,
  kept BIGINT,                         -- findings posted; NULL before the findings were known
  more BIGINT NOT NULL DEFAULT 0,      -- findings beyond the limits
  raw TEXT NOT NULL DEFAULT '',        -- the finder's answer, until it is sorted
  stop BOOLEAN NOT NULL DEFAULT FALSE, -- its tasks are to be stopped
  tries BIGINT NOT NULL DEFAULT 0,
  requested_by TEXT,
  created_at BIGINT NOT NULL,
  ended_at BIGINT
, unlooked BIGINT NOT NULL DEFAULT 0, carry BOOLEAN NOT NULL DEFAULT FALSE, due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE UNIQUE INDEX review_runs_open ON review_runs (pr_id) WHERE ended_at IS NULL;
CREATE INDEX review_runs_pull ON review_runs (pr_id, created_at);
CREATE INDEX review_runs_repo ON review_runs (account_id, repo_id, created_at);
CREATE INDEX review_runs_task ON review_runs (task_id);
CREATE INDEX review_runs_verify_task ON review_runs (verify_task_id);
CREATE TABLE review_findings (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  repo_id TEXT NOT NULL,
  pr_id TEXT NOT NULL,
  run_id TEXT NOT NULL REFERENCES review_runs (id),
  key TEXT NOT NULL,
  head_sha TEXT NOT NULL,              -- the lines count in it
  file TEXT NOT NULL,
  side TEXT NOT NULL,
  start_line BIGINT NOT NULL,          -- 0: one line
  line BIGINT NOT NULL,
  symbol TEXT NOT NULL,
  anchor TEXT NOT NULL,
  severity TEXT NOT NULL,
  kind TEXT NOT NULL,
  claim TEXT NOT NULL,
  why TEXT NOT NULL,
  how_to_see TEXT NOT NULL,
  suggestion TEXT NOT NULL DEFAULT '',
  confidence DOUBLE PRECISION NOT NULL DEFAULT 0,
  state TEXT NOT NULL,
  state_why TEXT NOT NULL DEFAULT '',
  evidence TEXT NOT NULL DEFAULT '',   -- of the verifier
  place_start BIGINT NOT NULL DEFAULT 0,
  place_line BIGINT NOT NULL DEFAULT 0, -- in the diff; 0: in the text of the review
  claim_no BIGINT NOT NULL DEFAULT 0,  -- its number among the claims that a verifier has; 0: it is not among them
  fixed_sha TEXT,
  dismissed_by TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
, raised BOOLEAN NOT NULL DEFAULT FALSE, unlooked BOOLEAN NOT NULL DEFAULT FALSE, ruled BOOLEAN NOT NULL DEFAULT FALSE, was TEXT NOT NULL DEFAULT '');
CREATE INDEX review_findings_pull ON review_findings (pr_id, created_at);
CREATE INDEX review_findings_run ON review_findings (run_id);
CREATE INDEX review_findings_repo ON review_findings (account_id, repo_id, state);
CREATE TABLE review_rules (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  repo_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  symbol TEXT NOT NULL,
  anchor TEXT NOT NULL,
  claim TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (repo_id, kind, symbol, anchor)
);
CREATE TABLE issues (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id),
  repo_id       TEXT NOT NULL REFERENCES repos (id),
  number        BIGINT,
  host_key      TEXT NOT NULL DEFAULT '',
  node_id       TEXT NOT NULL DEFAULT '',
  title         TEXT NOT NULL,
  body          TEXT NOT NULL,
  url           TEXT NOT NULL DEFAULT '',
  state         TEXT NOT NULL,
  author        TEXT NOT NULL DEFAULT '',
  author_bot    BOOLEAN NOT NULL DEFAULT FALSE,
  labels        TEXT NOT NULL DEFAULT '[]',
  milestone     TEXT NOT NULL DEFAULT '',
  comments      BIGINT NOT NULL DEFAULT 0,
  host_at       BIGINT NOT NULL DEFAULT 0,
  triage        TEXT NOT NULL DEFAULT 'none',
  ask_id        TEXT,
  escalation_id TEXT,
  seen_title    TEXT NOT NULL DEFAULT '',
  seen_body     TEXT NOT NULL DEFAULT '',
  voucher       TEXT NOT NULL DEFAULT '',     -- login of the person whose permission counts
  filing        BOOLEAN NOT NULL DEFAULT FALSE, -- an ask is to be filed
  reading       BOOLEAN NOT NULL DEFAULT FALSE, -- the issue is to be read again
  told          BOOLEAN NOT NULL DEFAULT FALSE, -- a comment has said what became of it
  due_at        BIGINT,
  tries         BIGINT NOT NULL DEFAULT 0,
  created_at    BIGINT NOT NULL,
  gone_at       BIGINT, round BIGINT NOT NULL DEFAULT 0, labelled_at BIGINT NOT NULL DEFAULT 0, finished BOOLEAN NOT NULL DEFAULT FALSE,
  UNIQUE (repo_id, number)
);
CREATE INDEX issues_list ON issues (account_id, repo_id, created_at DESC, id DESC);
CREATE INDEX issues_ask ON issues (ask_id) WHERE ask_id IS NOT NULL;
CREATE INDEX issues_due ON issues (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE issue_walks (
  repo_id TEXT PRIMARY KEY REFERENCES repos (id),
  cursor  TEXT NOT NULL,
  due_at  BIGINT,
  tries   BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX issue_walks_due ON issue_walks (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE issue_handoffs (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT NOT NULL REFERENCES repos (id),
  issue_id     TEXT NOT NULL REFERENCES issues (id),
  webhook_ref  TEXT NOT NULL,
  reason       TEXT NOT NULL,
  state        TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  created_at   BIGINT NOT NULL
, failure TEXT, moved_at BIGINT);
CREATE INDEX issue_handoffs_issue ON issue_handoffs (issue_id, created_at);
CREATE TABLE host_tokens (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  host TEXT NOT NULL,
  login TEXT NOT NULL,        -- of the person at the host
  masked TEXT NOT NULL,
  sealed TEXT NOT NULL,
  grants TEXT NOT NULL,       -- what the host said of repositories, as JSON
  expires_at BIGINT,          -- NULL: never, or the host does not say
  checked_at BIGINT NOT NULL,
  refused_at BIGINT,          -- when the host refused it; NULL: it has not
  created_at BIGINT NOT NULL, host_user_id TEXT NOT NULL DEFAULT '',
  UNIQUE (account_id, user_id)
);
CREATE INDEX host_tokens_user ON host_tokens (user_id);
CREATE TABLE repo_bindings (
  account_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  repo_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  checked_at BIGINT,          -- NULL: not with this token
  refused_at BIGINT,          -- when the host last refused the repository to it; NULL: it has not
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, user_id, repo_id)
);
CREATE TABLE ci_failures (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  sha        TEXT NOT NULL,
  source     TEXT NOT NULL,
  job        TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  attempt    BIGINT NOT NULL,
  side       TEXT NOT NULL,
  base_ref   TEXT NOT NULL,
  pr_id      TEXT NOT NULL,
  passed     BOOLEAN NOT NULL,
  class      TEXT NOT NULL,
  prints     TEXT NOT NULL,
  told       TEXT NOT NULL DEFAULT '{}',
  excerpt    TEXT NOT NULL,
  verdict    TEXT NOT NULL DEFAULT '',
  at         BIGINT NOT NULL,
  UNIQUE (repo_id, sha, source, job, host_id)
);
CREATE INDEX ci_failures_job ON ci_failures (repo_id, source, job, at);
CREATE INDEX ci_failures_at ON ci_failures (at);
CREATE TABLE ci_fingerprints (
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  fp         TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  job        TEXT NOT NULL,
  test       TEXT NOT NULL,
  error      TEXT NOT NULL,
  n          BIGINT NOT NULL DEFAULT 0,
  d          BIGINT NOT NULL DEFAULT 0,
  first_at   BIGINT NOT NULL,
  last_at    BIGINT NOT NULL,
  PRIMARY KEY (repo_id, fp)
);
CREATE INDEX ci_fingerprints_last ON ci_fingerprints (last_at);
CREATE TABLE ci_reruns (
  failure_id TEXT PRIMARY KEY,
  intent_id  TEXT NOT NULL,
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  sha        TEXT NOT NULL,
  source     TEXT NOT NULL,
  job        TEXT NOT NULL,
  at         BIGINT NOT NULL
);
CREATE INDEX ci_reruns_repo ON ci_reruns (repo_id, at);
CREATE INDEX ci_reruns_at ON ci_reruns (at);
CREATE TABLE ci_broken_bases (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  base_ref   TEXT NOT NULL,
  source     TEXT NOT NULL,
  job        TEXT NOT NULL,
  prints     TEXT NOT NULL,
  begun_at   BIGINT NOT NULL,
  ended_at   BIGINT
);
CREATE UNIQUE INDEX ci_broken_bases_open ON ci_broken_bases (repo_id, base_ref, source, job, prints) WHERE ended_at IS NULL;
CREATE TABLE ci_tidying (
  name   TEXT PRIMARY KEY,
  due_at BIGINT NOT NULL
);
CREATE TABLE review_places (
  finding_id TEXT PRIMARY KEY REFERENCES review_findings (id),
  pr_id      TEXT NOT NULL,
  comment_id TEXT NOT NULL
);
CREATE INDEX review_places_pull ON review_places (pr_id);
CREATE TABLE merge_batches (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  base_ref   TEXT NOT NULL,
  state      TEXT NOT NULL,
  base_sha   TEXT NOT NULL DEFAULT '',
  sha        TEXT NOT NULL DEFAULT '',
  tree       TEXT NOT NULL DEFAULT '',
  ref        TEXT NOT NULL DEFAULT '',
  ref_due    BIGINT,
  task_id    TEXT NOT NULL DEFAULT '',
  command    TEXT NOT NULL DEFAULT '',
  try        BIGINT NOT NULL DEFAULT 1,
  prints     TEXT NOT NULL DEFAULT '[]',
  why        TEXT NOT NULL DEFAULT '',
  due_at     BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT
);
CREATE UNIQUE INDEX merge_batches_open ON merge_batches (repo_id, base_ref) WHERE ended_at IS NULL;
CREATE INDEX merge_batches_sha ON merge_batches (repo_id, sha);
CREATE INDEX merge_batches_refs ON merge_batches (ref_due) WHERE ref_due IS NOT NULL;
CREATE TABLE merge_entries (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  base_ref   TEXT NOT NULL,
  pr_id      TEXT NOT NULL,
  number     BIGINT NOT NULL,
  action_id  TEXT NOT NULL,
  head_sha   TEXT NOT NULL,
  kind       TEXT NOT NULL,
  state      TEXT NOT NULL,
  batch_id   TEXT NOT NULL DEFAULT '',
  place      BIGINT NOT NULL DEFAULT 0,
  most       BIGINT NOT NULL DEFAULT 0,
  expects    TEXT NOT NULL DEFAULT '',
  group_sha  TEXT NOT NULL DEFAULT '',
  reason     TEXT NOT NULL DEFAULT '',
  why        TEXT NOT NULL DEFAULT '',
  log        TEXT NOT NULL DEFAULT '',
  ordered_at BIGINT NOT NULL,
  entered_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  left_at    BIGINT
);
CREATE UNIQUE INDEX merge_entries_open ON merge_entries (pr_id) WHERE left_at IS NULL;
CREATE INDEX merge_entries_line ON merge_entries (repo_id, base_ref, ordered_at) WHERE left_at IS NULL;
CREATE INDEX merge_entries_pull ON merge_entries (pr_id, head_sha);
CREATE TABLE merge_results (
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  tree       TEXT NOT NULL,
  command    TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  passed     BOOLEAN NOT NULL,
  why        TEXT NOT NULL,
  log        TEXT NOT NULL,
  at         BIGINT NOT NULL,
  PRIMARY KEY (repo_id, tree, command)
);
CREATE INDEX merge_results_at ON merge_results (at);
CREATE TABLE host_commands (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  repo_id     TEXT NOT NULL REFERENCES repos (id),
  pr_id       TEXT NOT NULL,
  comment_key TEXT NOT NULL,            -- issue:ID or line:ID
  place       TEXT NOT NULL DEFAULT '', -- path and line of the thread; '': the conversation
  login       TEXT NOT NULL,
  verb        TEXT NOT NULL,
  body        TEXT NOT NULL,
  state       TEXT NOT NULL,            -- done, declined, not_permitted, silenced
  answer      TEXT NOT NULL DEFAULT '', -- what was said to it
  created_at  BIGINT NOT NULL,
  UNIQUE (repo_id, comment_key)
);
CREATE INDEX host_commands_pull ON host_commands (pr_id, created_at);
CREATE TABLE host_reviews (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  pr_id      TEXT NOT NULL,
  host_key   TEXT NOT NULL,
  login      TEXT NOT NULL,
  label      TEXT NOT NULL,             -- of who decides by it
  state      TEXT NOT NULL,             -- approved, changes_requested, dismissed, superseded
  counts     TEXT NOT NULL,             -- yes, or why it does not
  head_sha   TEXT NOT NULL,
  text       TEXT NOT NULL DEFAULT '',  -- of one that requests changes
  action_id  TEXT,                      -- that it has approved
  answered   BOOLEAN NOT NULL DEFAULT FALSE, -- a round has been begun for it
  created_at BIGINT NOT NULL, said_at BIGINT NOT NULL DEFAULT 0, answered_sha TEXT NOT NULL DEFAULT '',
  UNIQUE (repo_id, host_key)
);
CREATE INDEX host_reviews_pull ON host_reviews (pr_id, state);
CREATE TABLE ci_reports (
  check_id   TEXT PRIMARY KEY REFERENCES ci_runs (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  told       TEXT NOT NULL DEFAULT '',
  due_at     BIGINT
, open BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX ci_reports_due ON ci_reports (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE host_limits (
  host      TEXT NOT NULL,
  payer     TEXT NOT NULL,
  resource  TEXT NOT NULL,
  most      BIGINT NOT NULL,
  remaining BIGINT NOT NULL,
  reset_at  BIGINT NOT NULL,
  PRIMARY KEY (host, payer, resource)
);
CREATE TABLE host_paces (
  host          TEXT NOT NULL,
  payer         TEXT NOT NULL,
  blocked_until BIGINT NOT NULL DEFAULT 0,
  next_write_at BIGINT NOT NULL DEFAULT 0,
  contents      TEXT NOT NULL DEFAULT '[]',
  touched_at    BIGINT NOT NULL, refusals BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (host, payer)
);
CREATE TABLE repo_creations (
  id              TEXT PRIMARY KEY,
  account_id      TEXT NOT NULL REFERENCES accounts (id),
  host            TEXT NOT NULL,
  owner           TEXT NOT NULL,
  name            TEXT NOT NULL,
  installation_id TEXT NOT NULL DEFAULT '',  -- '' at a host without installations
  private         BOOLEAN NOT NULL,
  description     TEXT NOT NULL,
  stack           TEXT NOT NULL,
  base            BIGINT NOT NULL,           -- version of the files that it begins with
  state           TEXT NOT NULL,             -- asked, made, done, failed
  tries           BIGINT NOT NULL DEFAULT 1,
  host_repo_id    TEXT NOT NULL DEFAULT '',  -- from made on, at a host that gives ids
  repo_id         TEXT,                      -- from made on
  commit_sha      TEXT NOT NULL DEFAULT '',  -- the first commit; '': somebody else made one
  task_id         TEXT,                      -- the task that sets it up; NULL: none could be queued
  note            TEXT NOT NULL DEFAULT '',  -- why there is no task, or why it failed
  answered        BOOLEAN NOT NULL DEFAULT FALSE,
  created_by      TEXT NOT NULL,
  user_id         TEXT NOT NULL,             -- for whom the task is; '': nobody
  created_at      BIGINT NOT NULL,
  ended_at        BIGINT
, due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE UNIQUE INDEX repo_creations_open ON repo_creations (host, owner, name) WHERE ended_at IS NULL;
CREATE INDEX repo_creations_name ON repo_creations (account_id, owner, name);
CREATE TABLE webhooks (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  name         TEXT NOT NULL,
  masked       TEXT NOT NULL,
  sealed       TEXT NOT NULL,
  types        TEXT NOT NULL,                -- JSON; the types of events that are sent
  created_by   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  unhealthy_at BIGINT,
  deleted_at   BIGINT
, format TEXT NOT NULL DEFAULT 'json', user_id TEXT REFERENCES users (id), failing_since BIGINT);
CREATE UNIQUE INDEX webhooks_name ON webhooks (account_id, name) WHERE deleted_at IS NULL;
CREATE TABLE webhook_events (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  type       TEXT NOT NULL,
  body       TEXT NOT NULL,
  source     TEXT NOT NULL,                  -- the audited event that it tells of; its own id if none
  created_at BIGINT NOT NULL,
  UNIQUE (account_id, source)
);
CREATE INDEX webhook_events_age ON webhook_events (created_at);
CREATE TABLE webhook_deliveries (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  hook_id    TEXT NOT NULL REFERENCES webhooks (id),
  event_id   TEXT NOT NULL REFERENCES webhook_events (id),
  state      TEXT NOT NULL,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT,
  created_at BIGINT NOT NULL
, holder TEXT NOT NULL DEFAULT '');
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (hook_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (event_id);
CREATE TABLE webhook_attempts (
  id              TEXT PRIMARY KEY,
  account_id      TEXT NOT NULL REFERENCES accounts (id),
  hook_id         TEXT NOT NULL REFERENCES webhooks (id),
  event_id        TEXT NOT NULL,
  delivery_id     TEXT NOT NULL,
  type            TEXT NOT NULL,
  attempt         BIGINT NOT NULL,
  state           TEXT NOT NULL,
  response_status BIGINT,
  excerpt         TEXT NOT NULL DEFAULT '',
  error           TEXT,
  took            BIGINT NOT NULL DEFAULT 0, -- microseconds
  next_at         BIGINT,
  at              BIGINT NOT NULL
);
CREATE INDEX webhook_attempts_newest ON webhook_attempts (account_id, id);
CREATE TABLE sources (
  id               TEXT PRIMARY KEY,
  account_id       TEXT NOT NULL REFERENCES accounts (id),
  name             TEXT NOT NULL,
  kind             TEXT NOT NULL,
  sealed           TEXT NOT NULL DEFAULT '',
  previous_until   BIGINT,
  repo_id          TEXT,
  projects         TEXT NOT NULL DEFAULT '{}', -- JSON; ids of repositories by names of projects
  label            TEXT NOT NULL DEFAULT '',   -- that an issue must have; '': any
  bot              TEXT NOT NULL DEFAULT '',   -- whose deliveries are echoes; '': nobody's
  trusted          BOOLEAN NOT NULL DEFAULT FALSE,
  mapping          TEXT NOT NULL DEFAULT '{}', -- JSON; of the kind generic
  created_by       TEXT NOT NULL,
  created_at       BIGINT NOT NULL,
  last_delivery_at BIGINT,                     -- of one that was signed
  last_refused_at  BIGINT,                     -- of one that was not, to the minute
  deleted_at       BIGINT
);
CREATE UNIQUE INDEX sources_name ON sources (account_id, name) WHERE deleted_at IS NULL;
CREATE INDEX sources_rotated ON sources (previous_until) WHERE previous_until IS NOT NULL;
CREATE TABLE source_deliveries (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  source_id   TEXT NOT NULL REFERENCES sources (id),
  event       TEXT NOT NULL,
  outcome     TEXT NOT NULL,
  reason      TEXT,
  title       TEXT NOT NULL DEFAULT '',
  project     TEXT NOT NULL DEFAULT '',
  repo_id     TEXT,
  ask_id      TEXT,
  bytes       BIGINT NOT NULL,
  body        TEXT,
  received_at BIGINT NOT NULL
);
CREATE INDEX source_deliveries_newest ON source_deliveries (source_id, id);
CREATE INDEX source_deliveries_age ON source_deliveries (received_at);
CREATE TABLE source_seen (
  source_id TEXT NOT NULL REFERENCES sources (id),
  key       TEXT NOT NULL,
  ask_id    TEXT NOT NULL,
  at        BIGINT NOT NULL,
  PRIMARY KEY (source_id, key)
);
CREATE INDEX source_seen_age ON source_seen (at);
CREATE TABLE trackers (
  account_id   TEXT PRIMARY KEY REFERENCES accounts (id),
  sealed       TEXT NOT NULL,
  team_id      TEXT NOT NULL,
  team_key     TEXT NOT NULL,
  team_name    TEXT NOT NULL,
  viewer_id    TEXT NOT NULL, -- whose key it is there
  viewer_name  TEXT NOT NULL,
  error        TEXT,          -- why Linear refuses the key; NULL: it does not
  connected_by TEXT NOT NULL,
  connected_at BIGINT NOT NULL
);
CREATE TABLE tracker_issues (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL,
  title      TEXT NOT NULL,
  body       TEXT NOT NULL,
  state      TEXT NOT NULL,
  identifier TEXT,
  url        TEXT,
  error      TEXT,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT
);
CREATE INDEX tracker_issues_due ON tracker_issues (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tracker_issues_list ON tracker_issues (account_id, created_at, id);
CREATE TABLE schedules (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT REFERENCES repos (id),   -- NULL: the judge picks one
  title        TEXT NOT NULL,
  body         TEXT NOT NULL,
  labels       TEXT NOT NULL,                -- JSON
  cron         TEXT NOT NULL,
  zone         TEXT NOT NULL,
  when_busy    TEXT NOT NULL,                -- queue, skip
  user_id      TEXT NOT NULL REFERENCES users (id), -- for whom the asks are filed
  scopes       TEXT NOT NULL,                -- JSON; the rights beyond which no verdict goes
  paused_why   TEXT,                         -- NULL: not paused
  next_at      BIGINT,
  last_at      BIGINT,
  last_outcome TEXT,
  last_ask_id  TEXT,                         -- the last ask that was filed
  created_by   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_at, id) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_account ON schedules (account_id, created_at, id);
CREATE TABLE digests (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  kind       TEXT NOT NULL,       -- daily, weekly
  period     TEXT NOT NULL,
  zone       TEXT NOT NULL,
  from_at    BIGINT NOT NULL,
  to_at      BIGINT NOT NULL,
  headline   TEXT NOT NULL,
  quiet      BOOLEAN NOT NULL,    -- nothing happened, and nothing waits
  content    TEXT NOT NULL,       -- JSON
  created_at BIGINT NOT NULL,
  UNIQUE (account_id, kind, period)
);
CREATE INDEX digests_account ON digests (account_id, created_at, id);
CREATE INDEX digests_age ON digests (created_at);
CREATE INDEX pulls_closed ON pulls (account_id, closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX ci_runs_finished ON ci_runs (account_id, finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE notifications (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  kind TEXT NOT NULL,
  noun TEXT NOT NULL,
  subject TEXT NOT NULL,
  repo TEXT NOT NULL,
  title TEXT NOT NULL,
  text TEXT NOT NULL,
  path TEXT NOT NULL,
  count BIGINT NOT NULL,
  rev BIGINT NOT NULL,
  shown BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  read_at BIGINT,
  archived_at BIGINT,
  settled_at BIGINT,
  mailed_at BIGINT
);
CREATE INDEX notifications_inbox ON notifications (account_id, user_id, rev);
CREATE INDEX notifications_subject ON notifications (account_id, kind, noun, subject) WHERE settled_at IS NULL;
CREATE INDEX notifications_old ON notifications (updated_at);
CREATE TABLE notification_people (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  rev BIGINT NOT NULL,
  quiet_from BIGINT NOT NULL DEFAULT 0,
  quiet_to BIGINT NOT NULL DEFAULT 0,
  quiet_zone TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (account_id, user_id)
);
CREATE TABLE notification_choices (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  kind TEXT NOT NULL,
  channel TEXT NOT NULL,
  enabled BOOLEAN NOT NULL,
  PRIMARY KEY (account_id, user_id, kind, channel)
);
CREATE TABLE push_subscriptions (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  digest     TEXT NOT NULL,
  service    TEXT NOT NULL,
  label      TEXT NOT NULL,
  sealed     TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  sent_at    BIGINT,
  UNIQUE (account_id, user_id, digest)
);
CREATE TABLE push_messages (
  id              TEXT PRIMARY KEY,
  account_id      TEXT NOT NULL REFERENCES accounts (id),
  subscription_id TEXT NOT NULL REFERENCES push_subscriptions (id),
  topic           TEXT NOT NULL,
  urgent          BOOLEAN NOT NULL,
  sealed          TEXT NOT NULL,
  tries           BIGINT NOT NULL DEFAULT 0,
  created_at      BIGINT NOT NULL, due_at BIGINT NOT NULL DEFAULT 9223372036854775807,
  UNIQUE (subscription_id, topic)
);
CREATE TABLE mail_refusals (
  address TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  refused_at BIGINT NOT NULL
);
CREATE TABLE mail_outages (
  server TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  tries BIGINT NOT NULL,
  since BIGINT NOT NULL,
  until BIGINT NOT NULL
);
CREATE INDEX mails_waiting ON mails (state, id) WHERE state <> 'sent';
CREATE TABLE email_routes (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  address TEXT NOT NULL,
  kinds TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  asked BIGINT NOT NULL,
  asked_at BIGINT NOT NULL,
  confirmed_at BIGINT,
  deleted_at BIGINT
, digest TEXT NOT NULL DEFAULT '', mailbox TEXT NOT NULL DEFAULT '');
CREATE UNIQUE INDEX email_routes_address ON email_routes (account_id, address) WHERE deleted_at IS NULL;
CREATE TABLE notification_mails (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  kind TEXT NOT NULL,
  begun BIGINT NOT NULL,
  mailed BIGINT NOT NULL,
  PRIMARY KEY (account_id, user_id, kind)
);
CREATE TABLE email_route_mails (
  route_id TEXT NOT NULL REFERENCES email_routes (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  begun BIGINT NOT NULL,
  mailed BIGINT NOT NULL,
  PRIMARY KEY (route_id, kind)
);
CREATE INDEX email_routes_digest ON email_routes (digest, asked_at);
CREATE INDEX mails_next ON mails (notice, id) WHERE state = 'due';
CREATE INDEX push_subscriptions_digest ON push_subscriptions (digest);
CREATE INDEX email_routes_mailbox ON email_routes (mailbox, asked_at);
CREATE INDEX mails_over ON mails (created_at) WHERE state <> 'due';
CREATE INDEX asks_source ON asks (account_id, source, created_at, id);
CREATE INDEX tasks_unfinished ON tasks (account_id, created_at, id)
  WHERE status IN ('pending', 'held', 'claimed', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable');
CREATE INDEX blockers_state ON blockers (account_id, state, created_at, id);
CREATE TABLE signin_links (
  hash TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  return_to TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX tasks_id ON tasks (account_id, id);
CREATE INDEX tasks_tail ON tasks ((substr(id, 33, 4)), account_id);
CREATE INDEX tasks_branch ON tasks (account_id, branch, created_at, id);
CREATE INDEX tasks_box ON tasks (account_id, box_id, created_at, id) WHERE box_id IS NOT NULL;
CREATE INDEX pulls_id ON pulls (account_id, id);
CREATE INDEX pulls_tail ON pulls ((substr(id, 33, 4)), account_id);
CREATE INDEX pulls_branch ON pulls (account_id, head_ref, created_at, id);
CREATE INDEX asks_id ON asks (account_id, id);
CREATE INDEX asks_tail ON asks ((substr(id, 33, 4)), account_id);
CREATE INDEX plans_id ON plans (account_id, id);
CREATE INDEX plans_tail ON plans ((substr(id, 33, 4)), account_id);
CREATE INDEX blockers_id ON blockers (account_id, id);
CREATE INDEX blockers_tail ON blockers ((substr(id, 33, 4)), account_id);
CREATE INDEX escalations_id ON escalations (account_id, id);
CREATE INDEX escalations_tail ON escalations ((substr(id, 33, 4)), account_id);
CREATE INDEX boxes_id ON boxes (account_id, id);
CREATE INDEX boxes_tail ON boxes ((substr(id, 33, 4)), account_id);
CREATE INDEX boxes_name ON boxes (account_id, name, created_at, id);
CREATE INDEX sessions_id ON sessions (account_id, id);
CREATE INDEX sessions_tail ON sessions ((substr(id, 33, 4)), account_id);
CREATE INDEX issues_id ON issues (account_id, id);
CREATE INDEX issues_tail ON issues ((substr(id, 33, 4)), account_id);
CREATE INDEX sessions_model ON sessions (account_id, model, started_at, id) WHERE model IS NOT NULL;
CREATE INDEX sessions_outcome ON sessions (account_id, outcome, started_at, id) WHERE outcome IS NOT NULL;
CREATE INDEX sessions_repo ON sessions (repo_id, started_at, id) WHERE repo_id IS NOT NULL;
CREATE TABLE former_members (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  PRIMARY KEY (account_id, user_id)
);
CREATE INDEX sessions_task ON sessions (task_id, account_id) WHERE task_id IS NOT NULL;
CREATE INDEX sessions_run ON sessions (run_id, account_id);
CREATE INDEX pulls_task ON pulls (task_id, account_id);
CREATE TABLE box_consents (
  box_id     TEXT NOT NULL REFERENCES boxes (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  asked_at   BIGINT NOT NULL,
  asked_by   TEXT NOT NULL,
  agreed_at  BIGINT, -- NULL: not yet
  PRIMARY KEY (box_id, account_id, user_id)
);
CREATE INDEX box_consents_user ON box_consents (user_id);
CREATE INDEX box_consents_account ON box_consents (account_id);
CREATE INDEX boxes_owner ON boxes (owner_id) WHERE owner_target = 'user';
CREATE UNIQUE INDEX invitations_open ON invitations (COALESCE(account_id, ''), email, login)
  WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE INDEX invitations_user ON invitations (user_id, created_at);
CREATE TABLE password_links (
  hash       TEXT PRIMARY KEY,
  user_id    TEXT NOT NULL REFERENCES users (id),
  expires_at BIGINT NOT NULL
);
CREATE INDEX password_links_user ON password_links (user_id);
CREATE INDEX asks_from_task ON asks (from_task, account_id) WHERE from_task IS NOT NULL;
CREATE INDEX boxes_shared ON boxes (owner_target) WHERE owner_target = 'shared';
CREATE TABLE account_quotas (
  account_id        TEXT PRIMARY KEY REFERENCES accounts (id),
  git_bytes         BIGINT,
  object_bytes      BIGINT,
  record_bytes      BIGINT,
  records           BIGINT,
  repos             BIGINT,
  tokens            BIGINT,
  person_tokens     BIGINT,
  writes_per_minute BIGINT
, boxes BIGINT);
CREATE TABLE account_measures (
  account_id   TEXT PRIMARY KEY REFERENCES accounts (id),
  object_bytes BIGINT NOT NULL DEFAULT 0,
  record_bytes BIGINT NOT NULL DEFAULT 0,
  records      BIGINT NOT NULL DEFAULT 0,
  received     BIGINT NOT NULL DEFAULT 0, -- bytes of requests that write, since the measure
  told         TEXT NOT NULL DEFAULT '[]', -- what the admins were told of: it is nearly full
  measured_at  BIGINT,
  rest_until   BIGINT NOT NULL DEFAULT 0, -- it is not measured again before, however much is sent
  due_at       BIGINT NOT NULL
);
CREATE INDEX account_measures_due ON account_measures (due_at);
CREATE TABLE repo_sizes (
  repo_id     TEXT PRIMARY KEY REFERENCES repos (id),
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  bytes       BIGINT NOT NULL,
  measured_at BIGINT NOT NULL
);
CREATE INDEX repo_sizes_account ON repo_sizes (account_id);
CREATE INDEX tokens_live ON tokens (account_id, user_id) WHERE revoked_at IS NULL;
CREATE INDEX ci_logs_account ON ci_logs (account_id);
CREATE INDEX sources_account ON sources (account_id);
CREATE TABLE ask_covers (
  task_id    TEXT NOT NULL REFERENCES tasks (id),
  ask_id     TEXT NOT NULL REFERENCES asks (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  PRIMARY KEY (task_id, ask_id)
);
CREATE TABLE pull_threads (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT NOT NULL REFERENCES repos (id),
  pr_id        TEXT NOT NULL,
  request_id   TEXT,                     -- the request for changes that it is part of
  head_sha     TEXT NOT NULL,            -- the head that was looked at: line counts in it
  path         TEXT NOT NULL DEFAULT '', -- '': it is about the whole
  side         TEXT NOT NULL DEFAULT '', -- RIGHT or LEFT, of a line
  line         BIGINT NOT NULL DEFAULT 0,
  comments     BIGINT NOT NULL DEFAULT 0,
  size         BIGINT NOT NULL DEFAULT 0, -- bytes of its comments
  host_thread  TEXT NOT NULL DEFAULT '', -- that it answers at the code host; '': none
  host_comment TEXT NOT NULL DEFAULT '', -- what the code host calls its first comment
  at_host      BOOLEAN NOT NULL DEFAULT FALSE, -- its code host shows it
  resolved_at  BIGINT,
  resolved_by  TEXT,                     -- label of a person; NULL: a head has answered it
  resolved_sha TEXT,                     -- that head
  created_at   BIGINT NOT NULL
);
CREATE INDEX pull_threads_pull ON pull_threads (pr_id, created_at);
CREATE INDEX pull_threads_account ON pull_threads (account_id);
CREATE INDEX pull_threads_request ON pull_threads (request_id) WHERE request_id IS NOT NULL;
CREATE TABLE pull_comments (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  thread_id  TEXT NOT NULL REFERENCES pull_threads (id),
  author     TEXT NOT NULL,              -- label
  body       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX pull_comments_thread ON pull_comments (thread_id, created_at);
CREATE INDEX pull_comments_account ON pull_comments (account_id);
CREATE INDEX pulls_to_move ON pulls (move_at) WHERE move_at > 0;
CREATE TABLE schema_releases (
  version BIGINT PRIMARY KEY,
  oldest  BIGINT NOT NULL, -- the newest migration that a program must know at least
  program TEXT NOT NULL    -- the version of the program that applied it; empty until it has
);
CREATE TABLE due (
  queue   TEXT NOT NULL,
  key     TEXT NOT NULL,
  lane    TEXT NOT NULL,             -- rank and account
  state   TEXT NOT NULL,             -- waits, ready, held, aside
  due_at  BIGINT NOT NULL,           -- end of the wait or of the hold
  set_at  BIGINT NOT NULL,           -- when due_at was written; 0: it is a time of the calendar
  tries   BIGINT NOT NULL DEFAULT 0,
  more    BIGINT NOT NULL DEFAULT 0, -- 1: it was added while it was held
  fence   BIGINT NOT NULL DEFAULT 0, -- a random number of the claim
  holder  TEXT NOT NULL DEFAULT '',  -- the node that has it
  deaths  BIGINT NOT NULL DEFAULT 0, -- holds that ran out
  suspect BIGINT NOT NULL DEFAULT 0, -- 1: a hold ran out; it is worked on alone
  why     TEXT NOT NULL DEFAULT '',  -- of the last failed try
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX due_ready ON due (queue, suspect, lane, due_at) WHERE state = 'ready';
CREATE INDEX due_later ON due (due_at) WHERE state IN ('waits', 'held');
CREATE INDEX host_deliveries_open ON host_deliveries (host, guid) WHERE ended_at IS NULL;
CREATE INDEX provider_keys_user ON provider_keys (user_id) WHERE user_id <> '';
CREATE INDEX host_heads_open ON host_heads (repo_id, sha) WHERE open;
CREATE INDEX ci_reports_open ON ci_reports (check_id) WHERE open;
CREATE INDEX repo_creations_going ON repo_creations (id) WHERE ended_at IS NULL;
CREATE INDEX tracker_issues_open ON tracker_issues (id) WHERE ended_at IS NULL;
CREATE TABLE kb_pages (
  repo_id     TEXT NOT NULL REFERENCES repos (id),
  slug        TEXT NOT NULL,
  ord         BIGINT NOT NULL,             -- its number in the lists; never used twice
  title       TEXT NOT NULL,
  links       TEXT NOT NULL,               -- slugs, as they were sent
  commit_sha  TEXT NOT NULL,               -- from which it was written; '' if nobody said
  files       TEXT NOT NULL,               -- paths from which it was written
  run_id      TEXT,                        -- the run that wrote it
  kept        TEXT NOT NULL,               -- the paragraphs that people wrote: base64 of bits
  version     BIGINT NOT NULL,
  seen_sha    TEXT NOT NULL,               -- up to this commit the files are as they were; '': not looked at
  stale_at    BIGINT,                      -- since when a file of it is another one
  stale_sha   TEXT NOT NULL DEFAULT '',
  stale_files TEXT NOT NULL DEFAULT '[]',
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  updated_by  TEXT NOT NULL,
  body        TEXT NOT NULL,
  PRIMARY KEY (repo_id, slug)
);
CREATE UNIQUE INDEX kb_pages_ord ON kb_pages (repo_id, ord, updated_at, slug);
CREATE TABLE kb_versions (
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  slug       TEXT NOT NULL,
  version    BIGINT NOT NULL,
  title      TEXT NOT NULL,
  links      TEXT NOT NULL,
  commit_sha TEXT NOT NULL,
  files      TEXT NOT NULL,
  run_id     TEXT,
  updated_at BIGINT NOT NULL,
  updated_by TEXT NOT NULL,
  body       TEXT NOT NULL,
  PRIMARY KEY (repo_id, slug, version)
);
CREATE TABLE kb_links (
  repo_id TEXT NOT NULL REFERENCES repos (id),
  target  TEXT NOT NULL,
  slug    TEXT NOT NULL,
  PRIMARY KEY (repo_id, target, slug)
);
CREATE INDEX kb_links_slug ON kb_links (repo_id, slug);
CREATE TABLE kb_indexes (
  repo_id  TEXT PRIMARY KEY REFERENCES repos (id),
  pages    BIGINT NOT NULL,
  next_ord BIGINT NOT NULL,
  writes   BIGINT NOT NULL,                -- how often a page was written
  formula  BIGINT NOT NULL,                -- the version of words and order that the lists are of
  due_at   BIGINT                          -- when the files of its pages are to be compared; NULL: not
);
CREATE INDEX kb_indexes_due ON kb_indexes (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE kb_grams (
  repo_id TEXT NOT NULL,
  gram    BIGINT NOT NULL,
  words   BLOB NOT NULL,
  PRIMARY KEY (repo_id, gram)
);
CREATE TABLE kb_terms (
  repo_id TEXT NOT NULL,
  term    TEXT NOT NULL,
  block   BIGINT NOT NULL,
  posts   BLOB NOT NULL,
  PRIMARY KEY (repo_id, term, block)
);
CREATE TABLE artifacts (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  run_id       TEXT,
  task_id      TEXT,
  repo_id      TEXT,
  name         TEXT NOT NULL,
  media_type   TEXT NOT NULL,
  size         BIGINT NOT NULL,             -- bytes; 0 when the object is gone
  visibility   TEXT NOT NULL,               -- run, account or public
  created_by   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  stored_at    BIGINT,                      -- NULL: the upload has not arrived
  missing_at   BIGINT,                      -- when the store was found to have lost it; NULL: it has it
  shared_until BIGINT,                      -- when the last link ends
  expires_at   BIGINT NOT NULL,
  deleted_at   BIGINT,
  sha256 TEXT NOT NULL DEFAULT '', due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE INDEX artifacts_account ON artifacts (account_id, created_at, id);
CREATE INDEX artifacts_run ON artifacts (run_id);
CREATE INDEX artifacts_task ON artifacts (task_id);
CREATE TABLE dashboards (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  owner_id   TEXT NOT NULL DEFAULT '', -- user; empty: the account shares it
  name       TEXT NOT NULL,
  name_key   TEXT NOT NULL,            -- the name in small letters
  layout     TEXT NOT NULL,
  builtin    TEXT,                     -- which of the built-in ones it is; NULL: none
  version    BIGINT NOT NULL DEFAULT 0, -- of a built-in one
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX dashboards_name ON dashboards (account_id, owner_id, name_key);
CREATE UNIQUE INDEX dashboards_builtin ON dashboards (account_id, builtin) WHERE builtin IS NOT NULL;
CREATE TABLE dashboard_widgets (
  id           TEXT PRIMARY KEY,
  dashboard_id TEXT NOT NULL REFERENCES dashboards (id),
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  place        BIGINT NOT NULL,
  spec         TEXT NOT NULL
);
CREATE INDEX dashboard_widgets_board ON dashboard_widgets (account_id, dashboard_id, place);
CREATE TABLE dashboard_syncs (
  id           TEXT PRIMARY KEY,
  state        TEXT NOT NULL, -- queued, running or done
  requested_by TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  finished_at  BIGINT,
  slot         BIGINT UNIQUE   -- 1 until it is done, so that there is one at a time; NULL then
, due_at BIGINT NOT NULL DEFAULT 9223372036854775807);
CREATE INDEX runs_ended ON runs (account_id, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX pull_actions_decided ON pull_actions (account_id, decided_at) WHERE decided_at IS NOT NULL;
CREATE TABLE lane_reports (
  task_id TEXT PRIMARY KEY,
  lane    TEXT NOT NULL,
  runner  TEXT NOT NULL,   -- version of the server that wrote it
  at      BIGINT NOT NULL,
  metrics TEXT NOT NULL
);
CREATE INDEX lane_reports_at ON lane_reports (at);
CREATE TABLE releases (
  id           TEXT PRIMARY KEY,
  channel      TEXT NOT NULL,
  version      TEXT NOT NULL,
  target       TEXT NOT NULL,              -- as linux/amd64
  size         BIGINT NOT NULL,
  sha256       TEXT NOT NULL,
  signature    TEXT NOT NULL,              -- as minisign writes it
  signed_by    TEXT NOT NULL,              -- the public key
  oldest       TEXT NOT NULL DEFAULT '',   -- the oldest version that it can follow; '': any
  commit_sha   TEXT NOT NULL DEFAULT '',
  built_with   TEXT NOT NULL DEFAULT '',
  published_at BIGINT NOT NULL,
  halted_at    BIGINT,
  halted_by    TEXT,
  halted_why   TEXT NOT NULL DEFAULT '', stored_at BIGINT,
  UNIQUE (channel, version, target)
);
CREATE INDEX releases_newest ON releases (published_at, id);
CREATE TABLE log_sinks (
  account_id   TEXT PRIMARY KEY REFERENCES accounts (id),
  kind         TEXT NOT NULL, -- https, otlp or s3
  masked       TEXT NOT NULL, -- address without what may be a secret in it
  header_names TEXT NOT NULL, -- JSON list: of the headers that are sent
  sealed       TEXT NOT NULL, -- JSON object: address, headers, key of S3
  sent         BIGINT NOT NULL DEFAULT 0, -- calls, since the row was set
  dropped      BIGINT NOT NULL DEFAULT 0, -- calls for which there was no room
  failed       BIGINT NOT NULL DEFAULT 0, -- calls that were given up after some tries
  last_error   TEXT, -- of the last batch; NULL: it was taken
  last_sent_at BIGINT,
  probed_at    BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
CREATE TABLE llm_prefs (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  provider   TEXT NOT NULL,
  model      TEXT NOT NULL, -- empty: the provider's own default
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, user_id)
);
CREATE INDEX llm_prefs_user ON llm_prefs (user_id);
CREATE TABLE donations (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id), -- who gives
  kind          TEXT NOT NULL, -- money, compute or llm
  repo_id       TEXT REFERENCES repos (id), -- NULL: the pool
  key_id        TEXT, -- of account_id
  box_id        TEXT, -- of account_id
  provider      TEXT NOT NULL DEFAULT '', -- of the key
  micros        BIGINT, -- that may be spent; NULL: as much as the giver's limits leave
  models        TEXT, -- JSON list of names: the ceiling; NULL: any model of the provider
  model         TEXT, -- that the recipient picked
  given_by      TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  parked_at     BIGINT, -- NULL: it is active
  parked_why    TEXT
);
CREATE INDEX donations_account ON donations (account_id, created_at, id);
CREATE INDEX donations_repo ON donations (repo_id, created_at, id) WHERE repo_id IS NOT NULL;
CREATE INDEX donations_pool ON donations (kind, id) WHERE repo_id IS NULL AND parked_at IS NULL;
CREATE UNIQUE INDEX donations_key ON donations (key_id) WHERE parked_at IS NULL AND kind = 'llm';
CREATE UNIQUE INDEX donations_box ON donations (box_id) WHERE parked_at IS NULL AND kind = 'compute';
CREATE INDEX donations_paying ON donations (key_id) WHERE parked_at IS NULL AND kind = 'money';
CREATE INDEX repos_taking ON repos (account_id, id) WHERE donations_enabled = TRUE AND private = FALSE AND enabled = TRUE;
CREATE TABLE payment_customers (
  account_id  TEXT PRIMARY KEY REFERENCES accounts (id),
  customer_id TEXT NOT NULL UNIQUE,          -- the provider's
  seats       BIGINT NOT NULL DEFAULT 0,     -- paid for, as last given to the account
  own_seats   BIGINT NOT NULL DEFAULT 0,     -- the account's besides, by the server or an operator
  gave_tier   BOOLEAN NOT NULL DEFAULT FALSE, -- its tier is the one that was paid for
  read_at     BIGINT,                        -- when the reading that is stored began; NULL: none is
  last_error  TEXT,                          -- of the last reading; NULL: none
  created_at  BIGINT NOT NULL
);
CREATE TABLE paid_subscriptions (
  id           TEXT NOT NULL,    -- the provider's
  kind         TEXT NOT NULL,    -- seats or oss_donor
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  status       TEXT NOT NULL,    -- in the provider's words
  quantity     BIGINT NOT NULL,  -- as the provider has it
  seats        BIGINT NOT NULL,  -- in force, until lowers_at
  lowers_at    BIGINT,           -- from then on quantity is in force; NULL: it is
  paid_until   BIGINT,           -- end of the last period that was paid; NULL: none was
  failed_at    BIGINT,           -- since when the provider waits for a payment; NULL: it does not
  cancels_at   BIGINT,           -- when it ends by itself; NULL: it goes on
  created_at   BIGINT NOT NULL, warned_at BIGINT,
  PRIMARY KEY (id, kind)
);
CREATE INDEX paid_subscriptions_account ON paid_subscriptions (account_id, created_at, id);
CREATE TABLE payment_events (
  id          TEXT PRIMARY KEY,
  account_id  TEXT,              -- NULL: of no customer that is known here
  kind        TEXT NOT NULL,
  received_at BIGINT NOT NULL
);
CREATE INDEX payment_events_received ON payment_events (received_at);
CREATE TABLE rollouts (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id),
  channel       TEXT NOT NULL,
  version       TEXT NOT NULL,
  state         TEXT NOT NULL,             -- preparing, canary, soaking, rolling, done, halted or cancelled
  wave          BIGINT NOT NULL DEFAULT 0, -- that is under way; 1 is the canary
  soak_s        BIGINT NOT NULL,
  soak_until    BIGINT,
  runs_before   BIGINT NOT NULL DEFAULT 0, -- that ended on the account's boxes in the week before
  failed_before BIGINT NOT NULL DEFAULT 0,
  runs_after    BIGINT NOT NULL DEFAULT 0, -- that ended on updated boxes
  failed_after  BIGINT NOT NULL DEFAULT 0,
  why           TEXT NOT NULL DEFAULT '',  -- it was halted
  started_by    TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  changed_at    BIGINT NOT NULL,
  ended_at      BIGINT
);
CREATE UNIQUE INDEX rollouts_live ON rollouts (account_id) WHERE ended_at IS NULL;
CREATE INDEX rollouts_newest ON rollouts (account_id, created_at, id);
CREATE TABLE rollout_boxes (
  rollout_id   TEXT NOT NULL REFERENCES rollouts (id),
  box_id       TEXT NOT NULL REFERENCES boxes (id),
  wave         BIGINT NOT NULL,           -- 0: it takes no part
  state        TEXT NOT NULL,
  why          TEXT NOT NULL DEFAULT '',
  from_version TEXT NOT NULL,
  step         TEXT NOT NULL DEFAULT '',  -- the version that it was told to take last
  command_id   TEXT NOT NULL DEFAULT '',
  changed_at   BIGINT NOT NULL,
  PRIMARY KEY (rollout_id, box_id)
);
CREATE TABLE update_pins (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL,             -- account, label or box
  ref        TEXT NOT NULL,             -- '', NAME=VALUE, or the id of the box
  channel    TEXT NOT NULL DEFAULT '',  -- '': that of the next wider scope
  pinned     BOOLEAN,                   -- NULL: as the next wider scope says
  why        TEXT NOT NULL DEFAULT '',
  set_by     TEXT NOT NULL,
  set_at     BIGINT NOT NULL,
  PRIMARY KEY (account_id, scope, ref)
);
CREATE TABLE ssh_joins (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id),
  host          TEXT NOT NULL,
  port          BIGINT NOT NULL,
  user_name     TEXT NOT NULL,
  host_key      TEXT NOT NULL, -- fingerprint, or kind and bytes; '': none was named
  url           TEXT NOT NULL, -- of this server, for the machine
  name          TEXT NOT NULL,
  slots         BIGINT,
  labels        TEXT NOT NULL, -- JSON object
  state         TEXT NOT NULL, -- waiting, joining, joined or failed
  reason        TEXT,          -- of a failure
  detail        TEXT,
  output        TEXT NOT NULL DEFAULT '', -- what the machine has printed
  seen          TEXT, -- host key that the machine has, where it is not the one that was named
  enrollment_id TEXT, -- once a token was made for it
  box_id        TEXT,
  created_by    TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  ended_at      BIGINT
);
CREATE INDEX ssh_joins_account ON ssh_joins (account_id, created_at, id);
CREATE INDEX ssh_joins_created ON ssh_joins (created_at);
CREATE UNIQUE INDEX ssh_joins_open ON ssh_joins (account_id, host, port, user_name) WHERE ended_at IS NULL;
CREATE TABLE spend_days (
  account_id  TEXT NOT NULL,
  day         BIGINT NOT NULL,
  session_id  TEXT NOT NULL,
  key_id      TEXT NOT NULL, -- '': not known, of calls from before this table
  provider    TEXT NOT NULL,
  model       TEXT NOT NULL,
  calls       BIGINT NOT NULL,
  unpriced    BIGINT NOT NULL,
  cost_micros BIGINT NOT NULL, given_micros BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, day, session_id, key_id, provider, model)
);
CREATE TABLE budget_warnings (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL, -- that of the limit; operator: what an operator of the server set for the account
  ref        TEXT NOT NULL,
  period     TEXT NOT NULL, -- YYYY-MM; '': for ever
  micros     BIGINT NOT NULL, -- the limit
  PRIMARY KEY (account_id, scope, ref, period)
);
CREATE TABLE kb_proposals (
  id         TEXT PRIMARY KEY,
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  slug       TEXT NOT NULL,
  run_id     TEXT NOT NULL,
  task_id    TEXT NOT NULL,
  declared   TEXT NOT NULL,                -- the run's own id of it
  base       BIGINT NOT NULL,              -- the version of the page that it was made of; 0: there was none
  kind       TEXT NOT NULL,                -- page: the whole text; note: put behind the text
  title      TEXT NOT NULL,
  body       TEXT NOT NULL,
  files      TEXT NOT NULL,
  commit_sha TEXT NOT NULL,                -- that the run looked at
  why        TEXT NOT NULL,
  state      TEXT NOT NULL,                -- judging, waiting, accepted, declined, outdated
  reason     TEXT NOT NULL,                -- of whoever decided, or why the judge did not
  decided_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  decided_at BIGINT
);
CREATE UNIQUE INDEX kb_proposals_declared ON kb_proposals (run_id, declared);
CREATE INDEX kb_proposals_repo ON kb_proposals (repo_id, id);
CREATE INDEX kb_proposals_open ON kb_proposals (repo_id, slug) WHERE decided_at IS NULL;
CREATE INDEX kb_proposals_judging ON kb_proposals (state) WHERE state = 'judging';
CREATE TABLE kb_keepers (
  repo_id  TEXT PRIMARY KEY REFERENCES repos (id),
  asked_at BIGINT,                         -- since when pages are to be looked after; NULL: not
  filed_at BIGINT,                         -- when the newest task was filed
  task_id  TEXT
, rounds BIGINT NOT NULL DEFAULT 0);
CREATE INDEX kb_keepers_asked ON kb_keepers (asked_at) WHERE asked_at IS NOT NULL;
CREATE TABLE provenances (
  pr_id        TEXT PRIMARY KEY REFERENCES pulls (id),
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT NOT NULL REFERENCES repos (id),
  merge_sha    TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  envelope     TEXT NOT NULL DEFAULT '',    -- '': not signed yet
  public_key   TEXT NOT NULL DEFAULT '',    -- that verifies it
  signed_at    BIGINT,
  artifact_id  TEXT,
  artifact     TEXT NOT NULL DEFAULT 'due', -- due, stored or none
  artifact_why TEXT NOT NULL DEFAULT '',    -- why there is none
  note         TEXT NOT NULL DEFAULT 'due', -- due, written or none
  note_why     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX provenances_account ON provenances (account_id);
CREATE INDEX provenances_open ON provenances (created_at) WHERE artifact = 'due' OR note = 'due';
CREATE TABLE template_lanes (
  task_id    TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  template   TEXT NOT NULL, -- that was named
  lane       TEXT NOT NULL, -- that the task has got: template, or its challenger
  created_at BIGINT NOT NULL
);
CREATE INDEX template_lanes_of ON template_lanes (account_id, template, lane);
CREATE TABLE nodes (
  id         TEXT PRIMARY KEY,  -- of the data folder
  boot       TEXT NOT NULL,     -- of the process: another one has taken the row over if it changes
  name       TEXT NOT NULL,     -- for people
  routes     TEXT NOT NULL,     -- host:port of its bus for other nodes
  door       TEXT NOT NULL,     -- host:port at which it answers other nodes
  boxes      TEXT NOT NULL,     -- addresses that boxes reach its bus at, with commas between
  version    TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  seen_at    BIGINT NOT NULL
, left_at BIGINT NOT NULL DEFAULT 0);
CREATE TABLE git_homes (
  owner   TEXT NOT NULL,
  name    TEXT NOT NULL,
  node_id TEXT NOT NULL,
  PRIMARY KEY (owner, name)
);
CREATE INDEX git_homes_node ON git_homes (node_id);
CREATE INDEX tasks_person ON tasks (account_id, requested_by, created_at, id) WHERE requested_by IS NOT NULL;
CREATE TABLE node_places (
  name    TEXT NOT NULL,     -- of what is held
  node_id TEXT NOT NULL,
  boot    TEXT NOT NULL,
  busy    BIGINT NOT NULL,   -- places that the node holds
  since   BIGINT NOT NULL,   -- from when on it waits for one; 0: it does not
  asked   BIGINT NOT NULL,   -- when it last asked for one
  PRIMARY KEY (name, node_id)
);
CREATE INDEX runs_reap ON runs (ended_at) WHERE ended_at IS NOT NULL AND events_reaped_at IS NULL;
CREATE INDEX asks_pending ON asks (id) WHERE state = 'pending';
CREATE TABLE answers (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  asker      TEXT NOT NULL,                -- the person, or the credential that names none
  question   TEXT NOT NULL,
  answer     TEXT NOT NULL,                -- as it was given
  marks      TEXT NOT NULL,                -- what finds the lines of each citation again
  asked_at   BIGINT NOT NULL
);
CREATE INDEX answers_asker ON answers (repo_id, asker, id);
CREATE INDEX provenances_commit ON provenances (repo_id, merge_sha);
CREATE TABLE lfs_begun (
  id         TEXT PRIMARY KEY,   -- of the repository to be
  account_id TEXT NOT NULL REFERENCES accounts (id),
  owner      TEXT NOT NULL,
  name       TEXT NOT NULL,
  begun_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX lfs_begun_place ON lfs_begun (owner, name);
CREATE INDEX lfs_begun_account ON lfs_begun (account_id);
CREATE TABLE "lfs_objects" (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL,             -- of a repository, or of one to be
  oid        TEXT NOT NULL,             -- SHA-256 of the bytes, in hexadecimal digits
  size       BIGINT NOT NULL,           -- bytes
  begun_at   BIGINT NOT NULL,           -- when its upload began
  stored_at  BIGINT,                    -- NULL: the upload has not ended, or the object is given up
  told_at    BIGINT NOT NULL DEFAULT 0  -- when somebody who pushes was last told that it is there, or its upload began
);
CREATE UNIQUE INDEX lfs_objects_stored ON lfs_objects (repo_id, oid) WHERE stored_at IS NOT NULL;
CREATE INDEX lfs_objects_account ON lfs_objects (account_id);
CREATE INDEX lfs_objects_begun ON lfs_objects (begun_at) WHERE stored_at IS NULL;
CREATE TABLE departures (
  id             TEXT PRIMARY KEY,
  account_id     TEXT NOT NULL UNIQUE,
  login          TEXT NOT NULL,
  deletion       TEXT NOT NULL,            -- JSON: what was removed, and which files are to be
  begun_at       BIGINT NOT NULL,          -- when its rows went
  finished_at    BIGINT,                   -- when the last file had gone; NULL: some are left
  envelope       TEXT NOT NULL DEFAULT ''  -- the signed proof, once all is gone
, rest TEXT NOT NULL DEFAULT '{}');
CREATE TABLE donation_uses (
  donation_id TEXT NOT NULL REFERENCES donations (id),
  account_id  TEXT NOT NULL, -- whose work it was
  repo_id     TEXT NOT NULL,
  calls       BIGINT NOT NULL,
  unpriced    BIGINT NOT NULL,
  micros      BIGINT NOT NULL,
  last_at     BIGINT NOT NULL,
  PRIMARY KEY (donation_id, account_id, repo_id)
);
CREATE INDEX donation_uses_account ON donation_uses (account_id, donation_id);
CREATE TABLE request_counts (
  bucket TEXT NOT NULL,   -- hash of its name
  second BIGINT NOT NULL,
  taken  BIGINT NOT NULL,
  PRIMARY KEY (bucket, second)
);
CREATE INDEX request_counts_second ON request_counts (second);
CREATE INDEX tasks_ask ON tasks (ask_id) WHERE ask_id IS NOT NULL;
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (holder) WHERE holder <> '';
CREATE TABLE account_closures (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  asked_by   TEXT NOT NULL,            -- user
  asked_at   BIGINT NOT NULL,
  ends_at    BIGINT NOT NULL,          -- from when on it cannot be taken back
  begun_at   BIGINT,                   -- when the deletion began; NULL: it can be taken back
  last_error TEXT NOT NULL DEFAULT ''  -- what keeps it from going on
);
CREATE INDEX budget_limits_ref ON budget_limits (ref);
CREATE INDEX tokens_user ON tokens (user_id) WHERE revoked_at IS NULL;
CREATE INDEX invitations_by ON invitations (invited_by) WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE INDEX account_closures_by ON account_closures (asked_by);
CREATE INDEX oauth_codes_user ON oauth_codes (user_id) WHERE token_id IS NULL;
CREATE INDEX oauth_devices_user ON oauth_devices (user_id) WHERE token_id IS NULL AND user_id IS NOT NULL;
CREATE INDEX email_routes_by ON email_routes (created_by) WHERE confirmed_at IS NULL AND deleted_at IS NULL;
CREATE INDEX enrollments_account ON enrollments (account_id);
CREATE INDEX tasks_ended ON tasks (repo_id, status, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX pulls_repo_merged ON pulls (repo_id, merged_at) WHERE merged_at IS NOT NULL;
CREATE INDEX pulls_repo_closed ON pulls (repo_id, closed_at) WHERE state = 'closed';
CREATE INDEX ci_runs_ended ON ci_runs (repo_id, status, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_repo ON tasks (repo_id, created_at, id, kind);
CREATE INDEX tasks_finished ON tasks (account_id, finished_at, status) WHERE finished_at IS NOT NULL;
CREATE TABLE revoked_tokens (
	token_hash TEXT   PRIMARY KEY,
	expires_at BIGINT NOT NULL
);
CREATE INDEX revoked_tokens_expires ON revoked_tokens (expires_at);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (1, 0, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (2, 1, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (3, 2, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (4, 3, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (5, 4, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (6, 5, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (7, 6, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (8, 8, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (9, 9, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (10, 10, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (11, 11, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (12, 12, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (13, 14, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (14, 15, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (15, 17, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (16, 18, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (17, 19, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (18, 21, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (19, 22, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (20, 25, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (21, 26, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (22, 27, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (23, 28, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (24, 30, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (25, 31, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (26, 32, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (27, 33, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (28, 34, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (29, 35, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (30, 36, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (31, 37, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (32, 38, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (33, 40, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (34, 41, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (35, 42, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (36, 43, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (37, 44, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (38, 45, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (39, 60, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (40, 61, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (41, 70, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (42, 71, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (43, 80, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (44, 85, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (45, 90, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (46, 95, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (47, 100, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (48, 105, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (49, 106, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (50, 107, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (51, 108, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (52, 109, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (53, 110, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (54, 111, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (55, 115, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (56, 120, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (57, 127, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (58, 130, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (59, 131, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (60, 135, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (61, 140, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (62, 141, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (63, 142, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (64, 150, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (65, 151, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (66, 160, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (67, 161, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (68, 162, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (69, 170, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (70, 171, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (71, 172, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (72, 179, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (73, 180, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (74, 181, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (75, 182, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (76, 183, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (77, 184, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (78, 190, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (79, 191, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (80, 195, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (81, 200, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (82, 201, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (83, 212, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (84, 221, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (85, 222, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (86, 228, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (87, 230, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (88, 234, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (89, 235, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (90, 238, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (91, 245, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (92, 246, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (93, 247, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (94, 250, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (95, 251, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (96, 254, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (97, 257, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (98, 260, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (99, 270, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (100, 272, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (101, 280, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (102, 300, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (103, 301, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (104, 310, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (105, 320, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (106, 321, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (107, 330, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (108, 331, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (109, 340, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (110, 341, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (111, 350, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (112, 351, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (113, 360, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (114, 370, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (115, 371, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (116, 372, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (117, 373, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (118, 374, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (119, 375, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (120, 376, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (121, 380, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (122, 390, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (123, 391, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (124, 400, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (125, 401, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (126, 402, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (127, 410, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (128, 411, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (129, 420, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (130, 421, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (131, 430, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (132, 440, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (133, 450, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (134, 470, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (135, 480, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (136, 490, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (137, 500, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (138, 501, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (139, 502, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (140, 510, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (141, 520, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (142, 521, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (143, 530, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (144, 570, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (145, 580, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (146, 581, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (147, 582, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (148, 583, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (149, 595, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (150, 600, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (151, 601, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (152, 610, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (153, 611, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (154, 620, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (155, 621, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (156, 622, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (157, 650, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (158, 651, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (159, 660, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (160, 670, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (161, 680, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (162, 690, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (163, 695, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (164, 705, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (165, 706, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (166, 715, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (167, 725, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (168, 726, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (169, 730, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (170, 735, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (171, 740, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (172, 745, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (173, 750, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (174, 760, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (175, 770, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (176, 785, 1);
INSERT INTO ci_tidying (name, due_at) VALUES ('failures', 0);
INSERT INTO schema_releases (version, oldest, program) VALUES (680, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (690, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (695, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (705, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (706, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (715, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (725, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (726, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (730, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (735, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (740, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (745, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (750, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (760, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (770, 670, '');
INSERT INTO schema_releases (version, oldest, program) VALUES (785, 670, '');
