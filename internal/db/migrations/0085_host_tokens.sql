-- +goose Up
-- Tokens that people have at code hosts, and the repositories that are driven with them.
CREATE TABLE host_tokens (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  host TEXT NOT NULL,
  login TEXT NOT NULL,        -- of the person at the host
  masked TEXT NOT NULL,
  sealed TEXT NOT NULL,
  grants TEXT NOT NULL,       -- what the host said of repositories, as JSON
  expires_at BIGINT,          -- NULL: never, or the host does not say
  checked_at BIGINT NOT NULL,
  refused_at BIGINT,          -- when the host refused it; NULL: it has not
  created_at BIGINT NOT NULL,
  UNIQUE (account_id, user_id)
);
CREATE INDEX host_tokens_user ON host_tokens (user_id);

CREATE TABLE repo_bindings (
  account_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  repo_id TEXT NOT NULL,
  token_id TEXT NOT NULL,
  checked_at BIGINT,          -- NULL: not with this token
  refused_at BIGINT,          -- when the host last refused the repository to it; NULL: it has not
  created_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, user_id, repo_id)
);
