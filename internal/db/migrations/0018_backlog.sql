-- +goose Up
-- Imports of the issues that are open at a repository's host, each into an ask.
CREATE TABLE backlog_imports (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT NOT NULL REFERENCES repos (id),
  state        TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  -- From then on a node may take it up; the one that has it moves this on.
  due_at       BIGINT NOT NULL,
  claim        TEXT,
  tries        BIGINT NOT NULL DEFAULT 0,
  filed        BIGINT NOT NULL DEFAULT 0,
  created_at   BIGINT NOT NULL,
  finished_at  BIGINT
);
-- A repository has one at a time.
CREATE UNIQUE INDEX backlog_imports_open ON backlog_imports (repo_id) WHERE state IN ('queued', 'running');
CREATE INDEX backlog_imports_due ON backlog_imports (due_at) WHERE state IN ('queued', 'running');
CREATE INDEX backlog_imports_account ON backlog_imports (account_id, repo_id, created_at);

-- +goose Down
DROP TABLE backlog_imports;
