-- +goose Up
-- Asks that are filed again and again. next_at is the next occurrence, NULL while the
-- schedule is paused.
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

-- +goose Down
SELECT 1;
