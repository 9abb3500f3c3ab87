-- +goose Up
-- The mails that are to ask people about an action; a row goes with its mail.
CREATE TABLE approval_mails (
  action_id  TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT NOT NULL
);
CREATE INDEX approval_mails_due ON approval_mails (due_at);

-- The links of those mails: one action, one head, one verb, one person.
CREATE TABLE action_links (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  action_id   TEXT NOT NULL,
  user_id     TEXT NOT NULL REFERENCES users (id),
  verb        TEXT NOT NULL,
  head_sha    TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  expires_at  BIGINT NOT NULL,
  redeemed_at BIGINT
);
CREATE INDEX action_links_expired ON action_links (expires_at);

-- +goose Down
SELECT 1;
