-- +goose Up
-- The inboxes of people. Rows of one kind and subject that were not read are one row with
-- a count. shown is false for a person who wants none of the kind in the inbox.
CREATE TABLE notifications (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  kind TEXT NOT NULL,
  noun TEXT NOT NULL,
  subject TEXT NOT NULL,
  repo TEXT NOT NULL,
  title TEXT NOT NULL,
  text TEXT NOT NULL,
  path TEXT NOT NULL,
  count BIGINT NOT NULL,
  rev BIGINT NOT NULL,
  shown BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  read_at BIGINT,
  archived_at BIGINT,
  settled_at BIGINT,
  mailed_at BIGINT
);
CREATE INDEX notifications_inbox ON notifications (account_id, user_id, rev);
CREATE INDEX notifications_subject ON notifications (account_id, kind, noun, subject) WHERE settled_at IS NULL;
CREATE INDEX notifications_old ON notifications (updated_at);

-- rev counts the changes of the inbox of a person.
CREATE TABLE notification_people (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  rev BIGINT NOT NULL,
  quiet_from BIGINT NOT NULL DEFAULT 0,
  quiet_to BIGINT NOT NULL DEFAULT 0,
  quiet_zone TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (account_id, user_id)
);

CREATE TABLE notification_choices (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id TEXT NOT NULL REFERENCES users (id),
  kind TEXT NOT NULL,
  channel TEXT NOT NULL,
  enabled BOOLEAN NOT NULL,
  PRIMARY KEY (account_id, user_id, kind, channel)
);

