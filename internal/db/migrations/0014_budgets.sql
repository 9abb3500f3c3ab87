-- +goose Up
-- What has been spent and what is set aside, one row a meter. Months are
-- YYYY-MM in UTC; meters that never start anew have the empty period.
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

-- Limits that people set, where no other table has them.
CREATE TABLE budget_limits (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL,
  ref        TEXT NOT NULL,
  micros     BIGINT NOT NULL,
  PRIMARY KEY (account_id, scope, ref)
);

-- What one node holds for one session. What is left of it when its node is
-- gone counts as spent: a call may have been under way.
CREATE TABLE reservations (
  session_id TEXT NOT NULL,
  node       TEXT NOT NULL,
  account_id TEXT NOT NULL,
  amount     BIGINT NOT NULL,
  used       BIGINT NOT NULL DEFAULT 0,
  meters     TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (session_id, node)
);
CREATE INDEX reservations_node ON reservations (node);
CREATE INDEX reservations_due ON reservations (expires_at);

-- Which limit stopped a task, and how high it was then.
CREATE TABLE budget_stops (
  task_id    TEXT PRIMARY KEY REFERENCES tasks (id),
  account_id TEXT NOT NULL,
  scope      TEXT NOT NULL,
  ref        TEXT NOT NULL,
  period     TEXT NOT NULL,
  micros     BIGINT NOT NULL
);
CREATE INDEX budget_stops_meter ON budget_stops (account_id, scope, ref);

-- What was spent in each minute, for the burn of the last hour.
CREATE TABLE spend_minutes (
  account_id  TEXT NOT NULL,
  minute      BIGINT NOT NULL,
  session_id  TEXT NOT NULL,
  calls       BIGINT NOT NULL,
  unpriced    BIGINT NOT NULL,
  cost_micros BIGINT,
  PRIMARY KEY (account_id, minute, session_id)
);

-- Why a live run has been told to stop and hand its work in; empty otherwise.
ALTER TABLE runs ADD COLUMN halting TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_broke ON tasks (id) WHERE status = 'held' AND failure_kind = 'budget_exhausted';
CREATE INDEX pulls_merged ON pulls (account_id, merged_at) WHERE merged_at IS NOT NULL;
