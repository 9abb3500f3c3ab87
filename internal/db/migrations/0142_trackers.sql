-- +goose Up
-- The workspace at Linear that an account opens issues in. sealed is the API key.
CREATE TABLE trackers (
  account_id   TEXT PRIMARY KEY REFERENCES accounts (id),
  sealed       TEXT NOT NULL,
  team_id      TEXT NOT NULL,
  team_key     TEXT NOT NULL,
  team_name    TEXT NOT NULL,
  viewer_id    TEXT NOT NULL, -- whose key it is there
  viewer_name  TEXT NOT NULL,
  error        TEXT,          -- why Linear refuses the key; NULL: it does not
  connected_by TEXT NOT NULL,
  connected_at BIGINT NOT NULL
);

-- The issues that are to be opened there, and those that were. The id is that of the
-- issue at Linear as well. due_at is NULL once it is over.
CREATE TABLE tracker_issues (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL,
  title      TEXT NOT NULL,
  body       TEXT NOT NULL,
  state      TEXT NOT NULL,
  identifier TEXT,
  url        TEXT,
  error      TEXT,
  tries      BIGINT NOT NULL DEFAULT 0,
  due_at     BIGINT,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT
);
CREATE INDEX tracker_issues_due ON tracker_issues (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX tracker_issues_list ON tracker_issues (account_id, created_at, id);

-- +goose Down
SELECT 1;
