-- +goose Up
-- How many mails of a kind a person and a team have had since begun, which is an hour ago
-- at most: the next one after it begins anew.
CREATE TABLE notification_mails (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  kind TEXT NOT NULL,
  begun BIGINT NOT NULL,
  mailed BIGINT NOT NULL,
  PRIMARY KEY (account_id, user_id, kind)
);
CREATE TABLE email_route_mails (
  route_id TEXT NOT NULL REFERENCES email_routes (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  begun BIGINT NOT NULL,
  mailed BIGINT NOT NULL,
  PRIMARY KEY (route_id, kind)
);
-- The hash of an address, by which its questions are counted once the route is deleted.
ALTER TABLE email_routes ADD COLUMN digest TEXT NOT NULL DEFAULT '';
CREATE INDEX email_routes_digest ON email_routes (digest, asked_at);
