-- +goose Up
-- side says where a commit stands: at a pull request (pull), at a branch (base), or in a
-- merge queue (group). hold is why its checks wait for a person.
ALTER TABLE host_heads ADD COLUMN side TEXT NOT NULL DEFAULT 'pull';
ALTER TABLE host_heads ADD COLUMN pr_id TEXT NOT NULL DEFAULT '';
ALTER TABLE host_heads ADD COLUMN hold TEXT NOT NULL DEFAULT '';

-- The ends of the jobs of code hosts, one for each attempt. prints are the fingerprints of
-- a failure, and told is what an agent is told of it.
CREATE TABLE ci_failures (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  sha        TEXT NOT NULL,
  source     TEXT NOT NULL,
  job        TEXT NOT NULL,
  host_id    TEXT NOT NULL,
  attempt    BIGINT NOT NULL,
  side       TEXT NOT NULL,
  base_ref   TEXT NOT NULL,
  pr_id      TEXT NOT NULL,
  passed     BOOLEAN NOT NULL,
  class      TEXT NOT NULL,
  prints     TEXT NOT NULL,
  told       TEXT NOT NULL DEFAULT '{}',
  excerpt    TEXT NOT NULL,
  verdict    TEXT NOT NULL DEFAULT '',
  at         BIGINT NOT NULL,
  UNIQUE (repo_id, sha, source, job, host_id)
);
CREATE INDEX ci_failures_job ON ci_failures (repo_id, source, job, at);
CREATE INDEX ci_failures_at ON ci_failures (at);

-- What is known of a fingerprint: in how many of its job's ends of the last days it came
-- and went.
CREATE TABLE ci_fingerprints (
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  fp         TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  job        TEXT NOT NULL,
  test       TEXT NOT NULL,
  error      TEXT NOT NULL,
  n          BIGINT NOT NULL DEFAULT 0,
  d          BIGINT NOT NULL DEFAULT 0,
  first_at   BIGINT NOT NULL,
  last_at    BIGINT NOT NULL,
  PRIMARY KEY (repo_id, fp)
);
CREATE INDEX ci_fingerprints_last ON ci_fingerprints (last_at);

-- The jobs that were run again, by the failure for which they were.
CREATE TABLE ci_reruns (
  failure_id TEXT PRIMARY KEY,
  intent_id  TEXT NOT NULL,
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  sha        TEXT NOT NULL,
  source     TEXT NOT NULL,
  job        TEXT NOT NULL,
  at         BIGINT NOT NULL
);
CREATE INDEX ci_reruns_repo ON ci_reruns (repo_id, at);
CREATE INDEX ci_reruns_at ON ci_reruns (at);

-- The jobs that fail at a branch as they fail at pull requests to it.
CREATE TABLE ci_broken_bases (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  base_ref   TEXT NOT NULL,
  source     TEXT NOT NULL,
  job        TEXT NOT NULL,
  prints     TEXT NOT NULL,
  begun_at   BIGINT NOT NULL,
  ended_at   BIGINT
);
CREATE UNIQUE INDEX ci_broken_bases_open ON ci_broken_bases (repo_id, base_ref, source, job, prints) WHERE ended_at IS NULL;

-- The node that tidies up what is known of failures, and when that is due again.
CREATE TABLE ci_tidying (
  name   TEXT PRIMARY KEY,
  due_at BIGINT NOT NULL
);
INSERT INTO ci_tidying (name, due_at) VALUES ('failures', 0);

-- +goose Down
SELECT 1;
