-- +goose Up
-- Repositories that the server was asked to make. A row is written before the host is
-- called, so that a server that is killed in between leaves nothing half made.
CREATE TABLE repo_creations (
  id              TEXT PRIMARY KEY,
  account_id      TEXT NOT NULL REFERENCES accounts (id),
  host            TEXT NOT NULL,
  owner           TEXT NOT NULL,
  name            TEXT NOT NULL,
  installation_id TEXT NOT NULL DEFAULT '',  -- '' at a host without installations
  private         BOOLEAN NOT NULL,
  description     TEXT NOT NULL,
  stack           TEXT NOT NULL,
  base            BIGINT NOT NULL,           -- version of the files that it begins with
  state           TEXT NOT NULL,             -- asked, made, done, failed
  tries           BIGINT NOT NULL DEFAULT 1,
  due_at          BIGINT NOT NULL,           -- when a loop goes on with it
  host_repo_id    TEXT NOT NULL DEFAULT '',  -- from made on, at a host that gives ids
  repo_id         TEXT,                      -- from made on
  commit_sha      TEXT NOT NULL DEFAULT '',  -- the first commit; '': somebody else made one
  task_id         TEXT,                      -- the task that sets it up; NULL: none could be queued
  note            TEXT NOT NULL DEFAULT '',  -- why there is no task, or why it failed
  answered        BOOLEAN NOT NULL DEFAULT FALSE,
  created_by      TEXT NOT NULL,
  user_id         TEXT NOT NULL,             -- for whom the task is; '': nobody
  created_at      BIGINT NOT NULL,
  ended_at        BIGINT
);
CREATE UNIQUE INDEX repo_creations_open ON repo_creations (host, owner, name) WHERE ended_at IS NULL;
CREATE INDEX repo_creations_due ON repo_creations (due_at) WHERE ended_at IS NULL;
CREATE INDEX repo_creations_name ON repo_creations (account_id, owner, name);

-- +goose Down
SELECT 1;
