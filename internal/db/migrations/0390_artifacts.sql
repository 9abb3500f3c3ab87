-- +goose Up
-- What agents and people have stored: the bytes are in the store of objects, under a key that
-- ends in the id. A row goes through three times: before stored_at the upload has not arrived,
-- from deleted_at on nobody sees it, and the row goes last of all.
CREATE TABLE artifacts (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  run_id       TEXT,
  task_id      TEXT,
  repo_id      TEXT,
  name         TEXT NOT NULL,
  media_type   TEXT NOT NULL,
  size         BIGINT NOT NULL,             -- bytes; 0 when the object is gone
  visibility   TEXT NOT NULL,               -- run, account or public
  created_by   TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  stored_at    BIGINT,                      -- NULL: the upload has not arrived
  missing_at   BIGINT,                      -- when the store was found to have lost it; NULL: it has it
  shared_until BIGINT,                      -- when the last link ends
  expires_at   BIGINT NOT NULL,
  deleted_at   BIGINT,
  due_at       BIGINT NOT NULL              -- when a loop looks at it
);
CREATE INDEX artifacts_account ON artifacts (account_id, created_at, id);
CREATE INDEX artifacts_run ON artifacts (run_id);
CREATE INDEX artifacts_task ON artifacts (task_id);
CREATE INDEX artifacts_due ON artifacts (due_at);
