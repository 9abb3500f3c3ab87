-- +goose Up
-- Commits whose checks at a code host are followed. settle_at is the time before which
-- no check at all means that none has begun yet.
CREATE TABLE host_heads (
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  sha        TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  base_ref   TEXT NOT NULL,
  tag        TEXT NOT NULL DEFAULT '',
  result     TEXT NOT NULL DEFAULT 'pending',
  why        TEXT NOT NULL DEFAULT '',
  settle_at  BIGINT NOT NULL,
  due_at     BIGINT,
  want       BIGINT NOT NULL DEFAULT 1,
  have       BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (repo_id, sha)
);
CREATE INDEX host_heads_due ON host_heads (due_at) WHERE due_at IS NOT NULL;
CREATE TABLE host_checks (
  repo_id    TEXT NOT NULL,
  sha        TEXT NOT NULL,
  source     TEXT NOT NULL,
  name       TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  own        BOOLEAN NOT NULL,
  required   BOOLEAN NOT NULL,
  state      TEXT NOT NULL,
  conclusion TEXT NOT NULL,
  job        TEXT NOT NULL,
  workflow   TEXT NOT NULL,
  attempt    BIGINT NOT NULL,
  url        TEXT NOT NULL,
  log        TEXT,
  started_at BIGINT,
  ended_at   BIGINT,
  PRIMARY KEY (repo_id, sha, source, name),
  FOREIGN KEY (repo_id, sha) REFERENCES host_heads (repo_id, sha)
);

-- +goose Down
SELECT 1;
