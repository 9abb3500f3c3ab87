-- +goose Up
-- Mail that is owed: written with its cause, carried out afterwards. The text
-- is sealed, for it may hold a one-time link, and emptied once it is out.
CREATE TABLE mails (
  id         TEXT PRIMARY KEY,
  recipient  TEXT NOT NULL,
  subject    TEXT NOT NULL,
  sealed     TEXT NOT NULL,
  state      TEXT NOT NULL,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT NOT NULL,
  last_error TEXT,
  created_at BIGINT NOT NULL,
  sent_at    BIGINT
);
CREATE INDEX mails_due ON mails (due_at) WHERE state = 'due';

-- Invitations: kind org_member has an account and a role, kind platform neither.
-- An address has at most one that can still be accepted, for each account and
-- for the platform.
CREATE TABLE invitations (
  id          TEXT PRIMARY KEY,
  kind        TEXT NOT NULL,
  account_id  TEXT REFERENCES accounts (id),
  email       TEXT NOT NULL,
  role        TEXT,
  bundle      TEXT NOT NULL DEFAULT '{}',
  token_hash  TEXT NOT NULL UNIQUE,
  invited_by  TEXT,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  accepted_at BIGINT,
  accepted_by TEXT,
  revoked_at  BIGINT
);
CREATE UNIQUE INDEX invitations_open ON invitations (COALESCE(account_id, ''), email) WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE INDEX invitations_kind ON invitations (kind, account_id, created_at, id);
CREATE INDEX invitations_email ON invitations (email);

-- Applications for access. An address that was declined may apply again.
CREATE TABLE access_requests (
  id          TEXT PRIMARY KEY,
  email       TEXT NOT NULL,
  name        TEXT NOT NULL,
  org         TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  invited_at  BIGINT,
  declined_at BIGINT,
  decided_by  TEXT
);
CREATE UNIQUE INDEX access_requests_live ON access_requests (email) WHERE declined_at IS NULL;
CREATE INDEX access_requests_created ON access_requests (created_at, id);

-- +goose Down
SELECT 1;
