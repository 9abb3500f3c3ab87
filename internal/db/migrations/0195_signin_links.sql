-- +goose Up
-- Addresses that sign a person in, once. Only the hash of the token is kept.
CREATE TABLE signin_links (
  hash TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  return_to TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
