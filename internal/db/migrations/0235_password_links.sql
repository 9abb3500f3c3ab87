-- +goose Up
-- Addresses that set a new password, once: the hash of the last segment of each.
CREATE TABLE password_links (
  hash       TEXT PRIMARY KEY,
  user_id    TEXT NOT NULL REFERENCES users (id),
  expires_at BIGINT NOT NULL
);
CREATE INDEX password_links_user ON password_links (user_id);
