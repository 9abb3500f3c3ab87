-- +goose Up
-- The issues of code hosts, as deliveries and sweeps tell of them, and what became of
-- each. number is NULL until the host has opened an issue that the server asked for.
-- seen_title and seen_body are the text that an ask is filed with.
CREATE TABLE issues (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id),
  repo_id       TEXT NOT NULL REFERENCES repos (id),
  number        BIGINT,
  host_key      TEXT NOT NULL DEFAULT '',
  node_id       TEXT NOT NULL DEFAULT '',
  title         TEXT NOT NULL,
  body          TEXT NOT NULL,
  url           TEXT NOT NULL DEFAULT '',
  state         TEXT NOT NULL,
  author        TEXT NOT NULL DEFAULT '',
  author_bot    BOOLEAN NOT NULL DEFAULT FALSE,
  labels        TEXT NOT NULL DEFAULT '[]',
  milestone     TEXT NOT NULL DEFAULT '',
  comments      BIGINT NOT NULL DEFAULT 0,
  host_at       BIGINT NOT NULL DEFAULT 0,
  triage        TEXT NOT NULL DEFAULT 'none',
  ask_id        TEXT,
  escalation_id TEXT,
  seen_title    TEXT NOT NULL DEFAULT '',
  seen_body     TEXT NOT NULL DEFAULT '',
  voucher       TEXT NOT NULL DEFAULT '',     -- login of the person whose permission counts
  filing        BOOLEAN NOT NULL DEFAULT FALSE, -- an ask is to be filed
  reading       BOOLEAN NOT NULL DEFAULT FALSE, -- the issue is to be read again
  told          BOOLEAN NOT NULL DEFAULT FALSE, -- a comment has said what became of it
  due_at        BIGINT,
  tries         BIGINT NOT NULL DEFAULT 0,
  created_at    BIGINT NOT NULL,
  gone_at       BIGINT,
  UNIQUE (repo_id, number)
);
CREATE INDEX issues_list ON issues (account_id, repo_id, created_at DESC, id DESC);
CREATE INDEX issues_ask ON issues (ask_id) WHERE ask_id IS NOT NULL;
CREATE INDEX issues_due ON issues (due_at) WHERE due_at IS NOT NULL;

-- How far the first walk through the open issues of a repository has come.
CREATE TABLE issue_walks (
  repo_id TEXT PRIMARY KEY REFERENCES repos (id),
  cursor  TEXT NOT NULL,
  due_at  BIGINT,
  tries   BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX issue_walks_due ON issue_walks (due_at) WHERE due_at IS NOT NULL;

-- What was handed to a webhook of the account.
CREATE TABLE issue_handoffs (
  id           TEXT PRIMARY KEY,
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT NOT NULL REFERENCES repos (id),
  issue_id     TEXT NOT NULL REFERENCES issues (id),
  webhook_ref  TEXT NOT NULL,
  reason       TEXT NOT NULL,
  state        TEXT NOT NULL,
  requested_by TEXT NOT NULL,
  created_at   BIGINT NOT NULL
);
CREATE INDEX issue_handoffs_issue ON issue_handoffs (issue_id, created_at);

-- +goose Down
SELECT 1;
