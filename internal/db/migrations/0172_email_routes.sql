-- +goose Up
-- Addresses of teams that get notices of some kinds. Nothing is sent before confirmed_at
-- but the question whether to. A deleted row has no address; asked and asked_at count its
-- questions on.
CREATE TABLE email_routes (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  address TEXT NOT NULL,
  kinds TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  asked BIGINT NOT NULL,
  asked_at BIGINT NOT NULL,
  confirmed_at BIGINT,
  deleted_at BIGINT
);
CREATE UNIQUE INDEX email_routes_address ON email_routes (account_id, address) WHERE deleted_at IS NULL;
