-- +goose Up
-- The audit rows of an account are a chain: each holds the hash of the one
-- before it, and its own. The head is the newest row's place and hash; rows
-- that belong to no account are the chain of ''.
ALTER TABLE audit ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN prev_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN hash TEXT NOT NULL DEFAULT '';
DROP INDEX audit_account;
CREATE UNIQUE INDEX audit_chain ON audit (account_id, seq) WHERE seq > 0;

CREATE TABLE audit_heads (
  account_id TEXT PRIMARY KEY,
  seq        BIGINT NOT NULL,
  hash       TEXT NOT NULL
);

-- Every look of an operator at a tenant's data, kept for ever.
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

-- +goose Down
SELECT 1;
