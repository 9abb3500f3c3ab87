-- +goose Up
-- The archived outputs of checks. kept_at is NULL until the object is stored; at due_at
-- the archive looks at the row again, to store the object or, after expires_at, to
-- delete both.
CREATE TABLE ci_logs (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  run_id     TEXT NOT NULL UNIQUE,
  size       BIGINT NOT NULL DEFAULT 0,
  kept_at    BIGINT,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX ci_logs_due ON ci_logs (due_at);

-- +goose Down
SELECT 1;
