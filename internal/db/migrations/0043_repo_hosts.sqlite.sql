-- +goose Up
-- A name is unique at one host: two hosts may have a repository of the same name.
-- host_repo_id is the permanent id that the host gave a repository; '' at a host that
-- never renames one. Of an account's repositories of one name, at most one is enabled.
--
-- SQLite drops no constraint of a table, so the table is made again. Its rows are
-- away for a moment: foreign keys are checked at the end of the transaction. The
-- indexes that are made for that check keep it from reading whole tables, once for
-- each repository.
PRAGMA defer_foreign_keys = ON;
CREATE INDEX asks_kept ON asks (repo_id);
CREATE INDEX backlog_imports_kept ON backlog_imports (repo_id);
CREATE INDEX blockers_kept ON blockers (repo_id);
CREATE INDEX ci_runs_kept ON ci_runs (repo_id);
CREATE INDEX escalations_kept ON escalations (repo_id);
CREATE INDEX plan_groups_kept ON plan_groups (repo_id);
CREATE INDEX plan_progress_kept ON plan_progress (repo_id);
CREATE INDEX plans_kept ON plans (repo_id);
CREATE INDEX queue_lanes_kept ON queue_lanes (repo_id);
CREATE INDEX runs_kept ON runs (repo_id);
CREATE TABLE repos_kept AS SELECT * FROM repos;
DROP TABLE repos;
CREATE TABLE repos (
  id                   TEXT PRIMARY KEY,
  account_id           TEXT NOT NULL REFERENCES accounts (id),
  owner                TEXT NOT NULL,
  name                 TEXT NOT NULL,
  host                 TEXT NOT NULL,
  default_branch       TEXT NOT NULL,
  private              BOOLEAN NOT NULL,
  enabled              BOOLEAN NOT NULL,
  donations_enabled    BOOLEAN NOT NULL DEFAULT FALSE,
  ai_first             BOOLEAN NOT NULL DEFAULT FALSE,
  canary_enabled       BOOLEAN NOT NULL DEFAULT FALSE,
  public_stats_enabled BOOLEAN NOT NULL DEFAULT FALSE,
  policy_sha           TEXT NOT NULL DEFAULT '',
  policy_yml           TEXT,
  policy_error         TEXT,
  last_activity_at     BIGINT,
  created_at           BIGINT NOT NULL,
  refresh_due          BIGINT,
  host_repo_id         TEXT NOT NULL DEFAULT ''
);
INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, donations_enabled, ai_first,
  canary_enabled, public_stats_enabled, policy_sha, policy_yml, policy_error, last_activity_at, created_at, refresh_due)
SELECT id, account_id, owner, name, host, default_branch, private, enabled, donations_enabled, ai_first,
  canary_enabled, public_stats_enabled, policy_sha, policy_yml, policy_error, last_activity_at, created_at, refresh_due
FROM repos_kept;
DROP TABLE repos_kept;
DROP INDEX asks_kept;
DROP INDEX backlog_imports_kept;
DROP INDEX blockers_kept;
DROP INDEX ci_runs_kept;
DROP INDEX escalations_kept;
DROP INDEX plan_groups_kept;
DROP INDEX plan_progress_kept;
DROP INDEX plans_kept;
DROP INDEX queue_lanes_kept;
DROP INDEX runs_kept;
CREATE INDEX repos_account ON repos (account_id, created_at, id);
CREATE INDEX repos_refresh ON repos (refresh_due) WHERE refresh_due IS NOT NULL;
CREATE UNIQUE INDEX repos_place ON repos (host, owner, name);
CREATE UNIQUE INDEX repos_host_repo_id ON repos (host, host_repo_id) WHERE host_repo_id <> '';
CREATE UNIQUE INDEX repos_enabled ON repos (account_id, owner, name) WHERE enabled;

-- +goose Down
SELECT 1;
