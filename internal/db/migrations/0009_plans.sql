-- +goose Up
-- Plans: work in several pull requests, cut into groups that wait for each
-- other.

ALTER TABLE tasks ADD COLUMN plan_id TEXT;
ALTER TABLE tasks ADD COLUMN group_id TEXT;
CREATE INDEX tasks_plan ON tasks (plan_id, created_at, id) WHERE plan_id IS NOT NULL;
CREATE INDEX tasks_pull ON tasks (pr_id) WHERE pr_id IS NOT NULL;

CREATE TABLE plans (
  id             TEXT PRIMARY KEY,
  account_id     TEXT NOT NULL REFERENCES accounts (id),
  repo_id        TEXT NOT NULL REFERENCES repos (id),
  title          TEXT NOT NULL,
  overview       TEXT NOT NULL,
  source         TEXT NOT NULL,
  dir            TEXT,
  revision       BIGINT NOT NULL,
  digest         TEXT NOT NULL DEFAULT '',
  commit_sha     TEXT,
  hold           BOOLEAN NOT NULL,
  scout_task_id  TEXT,
  ask_id         TEXT,
  note           TEXT,
  -- What the first approval answered; a later one answers the same.
  approved_tasks TEXT,
  approved_at    BIGINT,
  cancelled_at   BIGINT,
  failed_at      BIGINT,
  created_by     TEXT NOT NULL,
  created_at     BIGINT NOT NULL
);
CREATE UNIQUE INDEX plans_dir ON plans (account_id, repo_id, dir, revision) WHERE dir IS NOT NULL;

-- How far a plan has come, derived from its groups and their tasks whenever one
-- of them moves. It is a row of its own because a plan is locked before its
-- tasks, and this after them.
CREATE TABLE plan_progress (
  plan_id          TEXT PRIMARY KEY REFERENCES plans (id),
  account_id       TEXT NOT NULL REFERENCES accounts (id),
  repo_id          TEXT NOT NULL REFERENCES repos (id),
  status           TEXT NOT NULL,
  bucket           TEXT NOT NULL,
  merged           BIGINT NOT NULL DEFAULT 0,
  total            BIGINT NOT NULL DEFAULT 0,
  held_count       BIGINT NOT NULL DEFAULT 0,
  last_activity_at BIGINT NOT NULL
);
CREATE INDEX plan_progress_list ON plan_progress (account_id, last_activity_at, plan_id);
CREATE INDEX plan_progress_bucket ON plan_progress (account_id, bucket, last_activity_at, plan_id);
CREATE INDEX plan_progress_repo ON plan_progress (account_id, repo_id, last_activity_at, plan_id);

CREATE TABLE plan_groups (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  plan_id    TEXT NOT NULL REFERENCES plans (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  place      BIGINT NOT NULL,
  slug       TEXT NOT NULL,
  title      TEXT NOT NULL,
  problem    TEXT NOT NULL,
  files      TEXT NOT NULL,
  template   TEXT NOT NULL DEFAULT '',
  -- '' while the tasks say how it is; stopped or superseded for good.
  closed     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX plan_groups_plan ON plan_groups (plan_id, place, id);

CREATE TABLE plan_edges (
  group_id    TEXT NOT NULL REFERENCES plan_groups (id),
  upstream_id TEXT NOT NULL REFERENCES plan_groups (id),
  plan_id     TEXT NOT NULL REFERENCES plans (id),
  kind        TEXT NOT NULL,
  PRIMARY KEY (group_id, upstream_id)
);
CREATE INDEX plan_edges_plan ON plan_edges (plan_id);
CREATE INDEX plan_edges_upstream ON plan_edges (upstream_id);

-- One question put to several repositories, a scout in each.
CREATE TABLE plan_fanouts (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  ask        TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE TABLE plan_fanout_tasks (
  fanout_id TEXT NOT NULL REFERENCES plan_fanouts (id),
  place     BIGINT NOT NULL,
  task_id   TEXT NOT NULL REFERENCES tasks (id),
  PRIMARY KEY (fanout_id, place)
);

-- Accounts whose scouts may not write plan documents.
CREATE TABLE plan_file_switches (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  enabled    BOOLEAN NOT NULL
);
