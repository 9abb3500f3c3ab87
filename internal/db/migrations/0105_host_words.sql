-- +goose Up
-- What people say at code hosts: commands in comments, and reviews of theirs.

-- A command counts once. body is the comment as it was delivered first.
CREATE TABLE host_commands (
  id          TEXT PRIMARY KEY,
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  repo_id     TEXT NOT NULL REFERENCES repos (id),
  pr_id       TEXT NOT NULL,
  comment_key TEXT NOT NULL,            -- issue:ID or line:ID
  place       TEXT NOT NULL DEFAULT '', -- path and line of the thread; '': the conversation
  login       TEXT NOT NULL,
  verb        TEXT NOT NULL,
  body        TEXT NOT NULL,
  state       TEXT NOT NULL,            -- done, declined, not_permitted, silenced
  answer      TEXT NOT NULL DEFAULT '', -- what was said to it
  created_at  BIGINT NOT NULL,
  UNIQUE (repo_id, comment_key)
);
CREATE INDEX host_commands_pull ON host_commands (pr_id, created_at);

-- The reviews of people, each as its first delivery has told of it.
CREATE TABLE host_reviews (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  pr_id      TEXT NOT NULL,
  host_key   TEXT NOT NULL,
  login      TEXT NOT NULL,
  label      TEXT NOT NULL,             -- of who decides by it
  state      TEXT NOT NULL,             -- approved, changes_requested, dismissed, superseded
  counts     TEXT NOT NULL,             -- yes, or why it does not
  head_sha   TEXT NOT NULL,
  text       TEXT NOT NULL DEFAULT '',  -- of one that requests changes
  action_id  TEXT,                      -- that it has approved
  answered   BOOLEAN NOT NULL DEFAULT FALSE, -- a round has been begun for it
  created_at BIGINT NOT NULL,
  UNIQUE (repo_id, host_key)
);
CREATE INDEX host_reviews_pull ON host_reviews (pr_id, state);

-- Whether a person has had agents look after it ('on'), or leave it alone ('off').
ALTER TABLE pulls ADD COLUMN watch TEXT NOT NULL DEFAULT '';
-- What becomes of the watch when the round ends: 'off', or as ever.
ALTER TABLE pulls ADD COLUMN round_then TEXT NOT NULL DEFAULT '';
-- People whose last review requests changes, and those of them that no round has answered.
ALTER TABLE pulls ADD COLUMN objections BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pulls ADD COLUMN remarks BIGINT NOT NULL DEFAULT 0;

-- +goose Down
SELECT 1;
