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

-- +goose Down
SELECT 1;
