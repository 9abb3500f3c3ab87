-- +goose Up
-- Times are microseconds since 1970 (UTC), money is micro-dollars, JSON is text.
-- One portable text for SQLite and PostgreSQL.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

-- People and tenants -------------------------------------------------------

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
);

CREATE TABLE accounts (
  id         TEXT PRIMARY KEY,
  login      TEXT NOT NULL UNIQUE,
  kind       TEXT NOT NULL,
  tier       TEXT NOT NULL,
  seats      BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

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
);
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
);
CREATE INDEX tokens_account ON tokens (account_id, created_at, id);

-- Repositories and pull requests --------------------------------------------

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
  UNIQUE (owner, name)
);
CREATE INDEX repos_account ON repos (account_id, created_at, id);

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
  closed_at   BIGINT,
  UNIQUE (repo_id, number)
);
CREATE INDEX pulls_repo ON pulls (repo_id, created_at, id);
CREATE INDEX pulls_account_state ON pulls (account_id, state, created_at, id);
CREATE INDEX pulls_task ON pulls (task_id);
CREATE UNIQUE INDEX pulls_open_head ON pulls (repo_id, head_ref) WHERE state = 'open';

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
  due_at       BIGINT NOT NULL,
  tries        BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX pull_actions_pr ON pull_actions (pr_id, requested_at);
CREATE INDEX pull_actions_account ON pull_actions (account_id, requested_at, id) WHERE state = 'pending';
CREATE INDEX pull_actions_due ON pull_actions (due_at) WHERE state = 'approved';
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

-- Tasks, runs, sessions -------------------------------------------------------

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
);
CREATE INDEX tasks_list ON tasks (account_id, created_at, id);
CREATE INDEX tasks_queue ON tasks (account_id, priority DESC, queued_at, id) WHERE status = 'pending';
CREATE INDEX tasks_later ON tasks (account_id, not_before) WHERE status = 'pending' AND not_before > 0;
CREATE INDEX tasks_in_flight ON tasks (account_id, box_id) WHERE status IN ('claimed', 'running');
CREATE INDEX tasks_repo ON tasks (repo_id, created_at, id);

-- How many tasks of an account are pending, kept by every move so that nobody
-- has to count a long queue.
CREATE TABLE queue_depths (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  pending    BIGINT NOT NULL
);

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
);
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
);
CREATE INDEX sessions_account ON sessions (account_id, started_at, id);
CREATE INDEX sessions_run ON sessions (run_id);

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
);
CREATE INDEX escalations_account ON escalations (account_id, created_at, id);

-- Boxes -------------------------------------------------------------------------

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
  sending_until    BIGINT NOT NULL DEFAULT 0,
  created_at       BIGINT NOT NULL,
  revoked_at       BIGINT,
  retired_at       BIGINT
);
CREATE INDEX boxes_account ON boxes (account_id, created_at, id);
CREATE UNIQUE INDEX boxes_nkey ON boxes (nkey) WHERE nkey <> '';
CREATE INDEX boxes_beat ON boxes (last_beat_at) WHERE presence <> 'offline';

-- Keys whose credentials the bus must refuse. Until done_at it is not sure
-- that it does.
CREATE TABLE revoked_keys (
  nkey       TEXT PRIMARY KEY,
  box_id     TEXT NOT NULL REFERENCES boxes (id),
  revoked_at BIGINT NOT NULL,
  done_at    BIGINT
);
CREATE INDEX revoked_keys_owed ON revoked_keys (revoked_at) WHERE done_at IS NULL;

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

-- Commands to boxes that are owed to the bus: written with the change that
-- causes them, deleted once the bus has stored them.
CREATE TABLE box_commands (
  id         TEXT PRIMARY KEY,
  box_id     TEXT NOT NULL,
  place      TEXT NOT NULL,
  kind       TEXT NOT NULL,
  payload    TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX box_commands_box ON box_commands (box_id, place);

-- Models --------------------------------------------------------------------------

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
);
CREATE INDEX provider_keys_account ON provider_keys (account_id, priority, created_at, id);

CREATE TABLE templates (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  name       TEXT NOT NULL,
  body       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, name)
);

-- What happened: one row a change, written in its transaction. It is the audit
-- trail, and what live views and deliveries are fed from.
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
);
CREATE INDEX audit_account ON audit (account_id, at, id);

-- +goose Down
SELECT 1;
