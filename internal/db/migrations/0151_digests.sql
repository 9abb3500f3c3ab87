-- +goose Up
-- The time zone of an account, by its name in the IANA database.
ALTER TABLE accounts ADD COLUMN zone TEXT NOT NULL DEFAULT 'UTC';

-- What happened in an account within a day or a week. period is the date of the end, in
-- the zone.
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

-- When the next digest of an account is due. zone is that of due_at.
CREATE TABLE digest_dues (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  kind       TEXT NOT NULL,
  zone       TEXT NOT NULL,
  due_at     BIGINT NOT NULL,
  PRIMARY KEY (account_id, kind)
);
CREATE INDEX digest_dues_due ON digest_dues (due_at);

-- What ended within a time.
CREATE INDEX tasks_finished ON tasks (account_id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX pulls_closed ON pulls (account_id, closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX ci_runs_finished ON ci_runs (account_id, finished_at) WHERE finished_at IS NOT NULL;

-- +goose Down
SELECT 1;
