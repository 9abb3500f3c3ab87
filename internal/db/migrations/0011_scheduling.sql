-- +goose Up
-- What keeps a task waiting beside its dependencies and its ladder: open work
-- of the same repository that it would conflict with. A stacked task begins on
-- the branch of the task it is stacked on.
ALTER TABLE tasks ADD COLUMN conflict_with TEXT;
ALTER TABLE tasks ADD COLUMN conflict_paths TEXT NOT NULL DEFAULT '[]';
ALTER TABLE tasks ADD COLUMN conflict_at BIGINT;
ALTER TABLE tasks ADD COLUMN stacked_on TEXT;
ALTER TABLE tasks ADD COLUMN start_sha TEXT;

UPDATE tasks SET template = '' WHERE kind = 'ci';

DROP INDEX tasks_queue;
-- Tasks that wait for nothing but a box, in the order of their lanes; the same
-- for a box that serves one member only.
CREATE INDEX tasks_ready ON tasks (account_id, repo_id, template, priority, created_at, id)
  WHERE status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL;
CREATE INDEX tasks_ready_by ON tasks (account_id, created_by, repo_id, template, priority, created_at, id)
  WHERE status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL;
-- The other pending ones.
CREATE INDEX tasks_waiting ON tasks (account_id, created_at, id)
  WHERE status = 'pending' AND (waiting_deps > 0 OR not_before > 0 OR conflict_with IS NOT NULL);
CREATE INDEX tasks_behind ON tasks (conflict_with) WHERE conflict_with IS NOT NULL;
-- Work that may still change its repository.
CREATE INDEX tasks_open ON tasks (repo_id, claimed_at) WHERE status IN ('claimed', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable');
CREATE INDEX tasks_status ON tasks (account_id, status, created_at, id);

-- The lanes of a queue: the ready tasks of one repository, template and
-- priority. The lane with the lowest place is served next, see the task domain.
CREATE TABLE queue_lanes (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  template   TEXT NOT NULL, -- '' for checks, which need none
  priority   BIGINT NOT NULL,
  ready      BIGINT NOT NULL, -- how many tasks
  place      BIGINT NOT NULL,
  head_at    BIGINT NOT NULL, -- when its oldest task was made, or a bit earlier
  PRIMARY KEY (account_id, repo_id, template, priority)
);
CREATE INDEX queue_lanes_next ON queue_lanes (account_id, place, head_at) WHERE ready > 0;
ALTER TABLE queue_depths ADD COLUMN clock BIGINT NOT NULL DEFAULT -50; -- the highest place that was served
ALTER TABLE queue_depths ADD COLUMN served_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX queue_depths_next ON queue_depths (served_at, account_id) WHERE pending > 0;

INSERT INTO queue_lanes (account_id, repo_id, template, priority, ready, place, head_at)
  SELECT account_id, repo_id, template, priority, COUNT(*), -priority, MIN(created_at) FROM tasks
  WHERE status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL
  GROUP BY account_id, repo_id, template, priority;

-- Labels of tasks, so that a list can be narrowed to one.
CREATE TABLE task_labels (
  account_id TEXT NOT NULL,
  name       TEXT NOT NULL,
  value      TEXT NOT NULL,
  created_at BIGINT NOT NULL, -- of the task
  task_id    TEXT NOT NULL REFERENCES tasks (id),
  PRIMARY KEY (account_id, name, value, created_at, task_id)
);
