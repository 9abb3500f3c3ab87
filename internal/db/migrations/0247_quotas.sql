-- +goose Up
-- What operators have set for an account, in place of the limits of its tier; NULL: those of
-- the tier, -1: no limit.
CREATE TABLE account_quotas (
  account_id        TEXT PRIMARY KEY REFERENCES accounts (id),
  git_bytes         BIGINT,
  object_bytes      BIGINT,
  record_bytes      BIGINT,
  records           BIGINT,
  repos             BIGINT,
  tokens            BIGINT,
  person_tokens     BIGINT,
  writes_per_minute BIGINT
);
-- What an account has on record, as of its last measure, and what it has sent since.
CREATE TABLE account_measures (
  account_id   TEXT PRIMARY KEY REFERENCES accounts (id),
  object_bytes BIGINT NOT NULL DEFAULT 0,
  record_bytes BIGINT NOT NULL DEFAULT 0,
  records      BIGINT NOT NULL DEFAULT 0,
  received     BIGINT NOT NULL DEFAULT 0, -- bytes of requests that write, since the measure
  told         TEXT NOT NULL DEFAULT '[]', -- what the admins were told of: it is nearly full
  measured_at  BIGINT,
  rest_until   BIGINT NOT NULL DEFAULT 0, -- it is not measured again before, however much is sent
  due_at       BIGINT NOT NULL
);
CREATE INDEX account_measures_due ON account_measures (due_at);
-- How many bytes the repositories of the built-in host have on the disk.
CREATE TABLE repo_sizes (
  repo_id     TEXT PRIMARY KEY REFERENCES repos (id),
  account_id  TEXT NOT NULL REFERENCES accounts (id),
  bytes       BIGINT NOT NULL,
  measured_at BIGINT NOT NULL
);
CREATE INDEX repo_sizes_account ON repo_sizes (account_id);
CREATE INDEX tokens_live ON tokens (account_id, user_id) WHERE revoked_at IS NULL;
CREATE INDEX ci_logs_account ON ci_logs (account_id);
CREATE INDEX sources_account ON sources (account_id);
