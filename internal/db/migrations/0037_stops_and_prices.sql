-- +goose Up
-- A limit may stop a session without a task, too, and a model without a price
-- is a reason beside a limit that is spent.
CREATE TABLE stops (
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
);
INSERT INTO stops (id, account_id, task_id, reason, scope, ref, period, micros)
  SELECT task_id, account_id, task_id, 'budget_exhausted', scope, ref, period, micros FROM budget_stops;
DROP TABLE budget_stops;
ALTER TABLE stops RENAME TO budget_stops;
CREATE INDEX budget_stops_meter ON budget_stops (account_id, scope, ref);
CREATE INDEX budget_stops_task ON budget_stops (task_id) WHERE task_id IS NOT NULL;
DROP INDEX tasks_broke;
CREATE INDEX tasks_broke ON tasks (id) WHERE status = 'held' AND failure_kind IN ('budget_exhausted', 'unpriced_model');

-- Why a live run was told to stop, in words.
ALTER TABLE runs ADD COLUMN halting_why TEXT NOT NULL DEFAULT '';

-- What models cost an account, in micro-dollars for a million tokens: by name,
-- and for whatever one key is used for.
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
ALTER TABLE provider_keys ADD COLUMN price TEXT;

-- +goose Down
ALTER TABLE provider_keys DROP COLUMN price;
DROP TABLE prices;
ALTER TABLE runs DROP COLUMN halting_why;
DROP INDEX tasks_broke;
CREATE INDEX tasks_broke ON tasks (id) WHERE status = 'held' AND failure_kind = 'budget_exhausted';
DROP INDEX budget_stops_task;
DROP INDEX budget_stops_meter;
ALTER TABLE budget_stops RENAME TO stops;
CREATE TABLE budget_stops (
  task_id    TEXT PRIMARY KEY REFERENCES tasks (id),
  account_id TEXT NOT NULL,
  scope      TEXT NOT NULL,
  ref        TEXT NOT NULL,
  period     TEXT NOT NULL,
  micros     BIGINT NOT NULL
);
INSERT INTO budget_stops (task_id, account_id, scope, ref, period, micros)
  SELECT task_id, account_id, scope, ref, period, micros FROM stops WHERE task_id IS NOT NULL AND reason = 'budget_exhausted';
DROP TABLE stops;
CREATE INDEX budget_stops_meter ON budget_stops (account_id, scope, ref);
