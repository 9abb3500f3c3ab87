-- +goose Up
-- What is wanted and not scheduled yet. A judge decides what becomes of it.
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
  due_at            BIGINT NOT NULL,
  claim             TEXT,
  tries             BIGINT NOT NULL DEFAULT 0,
  session_id        TEXT,
  created_at        BIGINT NOT NULL,
  triaged_at        BIGINT
);
CREATE INDEX asks_list ON asks (account_id, created_at, id);
CREATE INDEX asks_state ON asks (account_id, state, created_at, id);
CREATE INDEX asks_repo ON asks (repo_id, created_at, id) WHERE repo_id IS NOT NULL;
CREATE UNIQUE INDEX asks_dedupe ON asks (account_id, dedupe);
CREATE INDEX asks_due ON asks (due_at) WHERE state = 'pending';
CREATE INDEX asks_run ON asks (run_id) WHERE run_id IS NOT NULL;

ALTER TABLE escalations ADD COLUMN ask_id TEXT;
ALTER TABLE escalations ADD COLUMN resolved_by TEXT;
ALTER TABLE escalations ADD COLUMN note TEXT;
CREATE INDEX escalations_open ON escalations (account_id, created_at, id) WHERE resolved_at IS NULL;
CREATE INDEX escalations_ask ON escalations (ask_id) WHERE ask_id IS NOT NULL;

-- +goose Down
SELECT 1;
