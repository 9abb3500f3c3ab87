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

-- What operators set for an account. No cap of its own: the default holds.
ALTER TABLE accounts ADD COLUMN spend_cap_micros BIGINT;
ALTER TABLE accounts ADD COLUMN oss_reviewed_at BIGINT;
CREATE INDEX accounts_created ON accounts (created_at, id);
CREATE INDEX users_created ON users (created_at, id);

-- Free capacity that an operator gave an account or a person.
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

-- What people say they have done on the way to their first task; what the
-- platform can see for itself is not kept.
CREATE TABLE onboarding (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  event      TEXT NOT NULL,
  at         BIGINT NOT NULL,
  PRIMARY KEY (account_id, event)
);

-- +goose Down
SELECT 1;
