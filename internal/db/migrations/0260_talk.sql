-- +goose Up
-- What people say about a pull request here: threads on lines of it and on the whole.
CREATE TABLE pull_threads (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT NOT NULL REFERENCES repos (id),
  pr_id        TEXT NOT NULL,
  request_id   TEXT,                     -- the request for changes that it is part of
  head_sha     TEXT NOT NULL,            -- the head that was looked at: line counts in it
  path         TEXT NOT NULL DEFAULT '', -- '': it is about the whole
  side         TEXT NOT NULL DEFAULT '', -- RIGHT or LEFT, of a line
  line         BIGINT NOT NULL DEFAULT 0,
  comments     BIGINT NOT NULL DEFAULT 0,
  size         BIGINT NOT NULL DEFAULT 0, -- bytes of its comments
  host_thread  TEXT NOT NULL DEFAULT '', -- that it answers at the code host; '': none
  host_comment TEXT NOT NULL DEFAULT '', -- what the code host calls its first comment
  at_host      BOOLEAN NOT NULL DEFAULT FALSE, -- its code host shows it
  resolved_at  BIGINT,
  resolved_by  TEXT,                     -- label of a person; NULL: a head has answered it
  resolved_sha TEXT,                     -- that head
  created_at   BIGINT NOT NULL
);
CREATE INDEX pull_threads_pull ON pull_threads (pr_id, created_at);
CREATE INDEX pull_threads_account ON pull_threads (account_id);
CREATE INDEX pull_threads_request ON pull_threads (request_id) WHERE request_id IS NOT NULL;

CREATE TABLE pull_comments (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  thread_id  TEXT NOT NULL REFERENCES pull_threads (id),
  author     TEXT NOT NULL,              -- label
  body       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX pull_comments_thread ON pull_comments (thread_id, created_at);
CREATE INDEX pull_comments_account ON pull_comments (account_id);

-- Rounds that answered requests for changes, since the pull request was armed.
ALTER TABLE pulls ADD COLUMN request_rounds BIGINT NOT NULL DEFAULT 0;
