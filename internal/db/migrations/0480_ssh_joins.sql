-- +goose Up
-- Machines that the server was asked to join over SSH, newest last. A row ends once.
CREATE TABLE ssh_joins (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id),
  host          TEXT NOT NULL,
  port          BIGINT NOT NULL,
  user_name     TEXT NOT NULL,
  host_key      TEXT NOT NULL, -- fingerprint, or kind and bytes; '': none was named
  url           TEXT NOT NULL, -- of this server, for the machine
  name          TEXT NOT NULL,
  slots         BIGINT,
  labels        TEXT NOT NULL, -- JSON object
  state         TEXT NOT NULL, -- waiting, joining, joined or failed
  reason        TEXT,          -- of a failure
  detail        TEXT,
  output        TEXT NOT NULL DEFAULT '', -- what the machine has printed
  seen          TEXT, -- host key that the machine has, where it is not the one that was named
  enrollment_id TEXT, -- once a token was made for it
  box_id        TEXT,
  created_by    TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  ended_at      BIGINT
);
CREATE INDEX ssh_joins_account ON ssh_joins (account_id, created_at, id);
CREATE INDEX ssh_joins_created ON ssh_joins (created_at);
CREATE UNIQUE INDEX ssh_joins_open ON ssh_joins (account_id, host, port, user_name) WHERE ended_at IS NULL;
