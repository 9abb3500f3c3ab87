-- +goose Up
-- Where the prompts and answers of an account's model calls are sent, one row an account.
CREATE TABLE log_sinks (
  account_id   TEXT PRIMARY KEY REFERENCES accounts (id),
  kind         TEXT NOT NULL, -- https, otlp or s3
  masked       TEXT NOT NULL, -- address without what may be a secret in it
  header_names TEXT NOT NULL, -- JSON list: of the headers that are sent
  sealed       TEXT NOT NULL, -- JSON object: address, headers, key of S3
  sent         BIGINT NOT NULL DEFAULT 0, -- calls, since the row was set
  dropped      BIGINT NOT NULL DEFAULT 0, -- calls for which there was no room
  failed       BIGINT NOT NULL DEFAULT 0, -- calls that were given up after some tries
  last_error   TEXT, -- of the last batch; NULL: it was taken
  last_sent_at BIGINT,
  probed_at    BIGINT NOT NULL,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL
);
