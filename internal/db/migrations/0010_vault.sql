-- +goose Up
-- What a run needs of people: secrets, and the blockers by which it asks; and
-- the words that people put into every brief.

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

-- The public key of the process on the box that fetched the run's secrets
-- first. No other gets them.
ALTER TABLE runs ADD COLUMN secrets_key TEXT;

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
CREATE INDEX blockers_open ON blockers (account_id, created_at, id) WHERE state = 'open';
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
  landed_by   TEXT,
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

-- A person's own, in whatever account they act.
CREATE TABLE personal_prompts (
  user_id    TEXT PRIMARY KEY REFERENCES users (id),
  prompt     TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);
