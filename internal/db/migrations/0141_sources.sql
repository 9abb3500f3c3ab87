-- +goose Up
-- The systems whose deliveries an account takes. sealed holds the secret that signs them,
-- and the one before it until previous_until; it is empty where none was given yet, and
-- once the source was disconnected.
CREATE TABLE sources (
  id               TEXT PRIMARY KEY,
  account_id       TEXT NOT NULL REFERENCES accounts (id),
  name             TEXT NOT NULL,
  kind             TEXT NOT NULL,
  sealed           TEXT NOT NULL DEFAULT '',
  previous_until   BIGINT,
  repo_id          TEXT,
  projects         TEXT NOT NULL DEFAULT '{}', -- JSON; ids of repositories by names of projects
  label            TEXT NOT NULL DEFAULT '',   -- that an issue must have; '': any
  bot              TEXT NOT NULL DEFAULT '',   -- whose deliveries are echoes; '': nobody's
  trusted          BOOLEAN NOT NULL DEFAULT FALSE,
  mapping          TEXT NOT NULL DEFAULT '{}', -- JSON; of the kind generic
  created_by       TEXT NOT NULL,
  created_at       BIGINT NOT NULL,
  last_delivery_at BIGINT,                     -- of one that was signed
  last_refused_at  BIGINT,                     -- of one that was not, to the minute
  deleted_at       BIGINT
);
CREATE UNIQUE INDEX sources_name ON sources (account_id, name) WHERE deleted_at IS NULL;
CREATE INDEX sources_rotated ON sources (previous_until) WHERE previous_until IS NOT NULL;

-- The ledger: the newest deliveries of a source. body is what a mapping is tried on.
CREATE TABLE source_deliveries (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  source_id   TEXT NOT NULL REFERENCES sources (id),
  event       TEXT NOT NULL,
  outcome     TEXT NOT NULL,
  reason      TEXT,
  title       TEXT NOT NULL DEFAULT '',
  project     TEXT NOT NULL DEFAULT '',
  repo_id     TEXT,
  ask_id      TEXT,
  bytes       BIGINT NOT NULL,
  body        TEXT,
  received_at BIGINT NOT NULL
);
CREATE INDEX source_deliveries_newest ON source_deliveries (source_id, id);
CREATE INDEX source_deliveries_age ON source_deliveries (received_at);

-- What was taken already: the vendor's ids of deliveries, and hashes of their bodies.
CREATE TABLE source_seen (
  source_id TEXT NOT NULL REFERENCES sources (id),
  key       TEXT NOT NULL,
  ask_id    TEXT NOT NULL,
  at        BIGINT NOT NULL,
  PRIMARY KEY (source_id, key)
);
CREATE INDEX source_seen_age ON source_seen (at);

-- +goose Down
SELECT 1;
