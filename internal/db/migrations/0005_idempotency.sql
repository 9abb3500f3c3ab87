-- +goose Up
-- What was answered to writes that came with an Idempotency-Key, for a day.
CREATE TABLE idempotency_keys (
  account_id   TEXT NOT NULL,
  key          TEXT NOT NULL,
  print        TEXT NOT NULL,    -- of what the key is bound to
  claim        TEXT NOT NULL,    -- who answers, or answered
  effect       BOOLEAN NOT NULL, -- the claim has changed something
  status       BIGINT NOT NULL,  -- of the answer; 0 while there is none
  content_type TEXT NOT NULL,
  body         BYTEA NOT NULL,
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
