-- +goose Up
-- A reader of events, and since when it has read; and how far it has read the
-- events of each account. An account without a row is one that came later.
CREATE TABLE event_readers (
  name  TEXT PRIMARY KEY,
  since BIGINT NOT NULL
);
CREATE TABLE event_cursors (
  reader     TEXT NOT NULL REFERENCES event_readers (name),
  account_id TEXT NOT NULL,
  seq        BIGINT NOT NULL,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT,
  PRIMARY KEY (reader, account_id)
);

-- +goose Down
SELECT 1;
