-- +goose Up
-- The person at the beginning of a chain of work: limits, members' own boxes and
-- system prompts go by whoever asked, not by who made a row. NULL: nobody asked.
ALTER TABLE asks ADD COLUMN requested_by TEXT;
ALTER TABLE tasks ADD COLUMN requested_by TEXT;
ALTER TABLE plans ADD COLUMN requested_by TEXT;
-- Of a session without a task; a task has its own.
ALTER TABLE sessions ADD COLUMN requested_by TEXT;

UPDATE asks SET requested_by = filer_id;
UPDATE asks SET requested_by = SUBSTR(filed_by, 6) WHERE requested_by IS NULL AND filed_by LIKE 'user:%';
UPDATE tasks SET requested_by = SUBSTR(created_by, 6) WHERE created_by LIKE 'user:%';
UPDATE plans SET requested_by = SUBSTR(created_by, 6) WHERE created_by LIKE 'user:%';
-- What the platform made for an ask, a plan or a pull request.
UPDATE plans SET requested_by = (SELECT a.requested_by FROM asks a WHERE a.id = plans.ask_id) WHERE requested_by IS NULL AND ask_id IS NOT NULL;
UPDATE tasks SET requested_by = (SELECT a.requested_by FROM asks a WHERE a.id = tasks.ask_id) WHERE requested_by IS NULL AND ask_id IS NOT NULL;
UPDATE tasks SET requested_by = (SELECT p.requested_by FROM plans p WHERE p.id = tasks.plan_id) WHERE requested_by IS NULL AND plan_id IS NOT NULL;
UPDATE tasks SET requested_by = (SELECT w.requested_by FROM pulls p JOIN tasks w ON w.id = p.task_id WHERE p.id = tasks.pr_id)
  WHERE requested_by IS NULL AND pr_id IS NOT NULL AND kind IN ('ci', 'babysit');
-- What agents asked for in those tasks, and what was made of that.
UPDATE asks SET requested_by = (SELECT t.requested_by FROM runs n JOIN tasks t ON t.id = n.task_id WHERE n.id = asks.run_id)
  WHERE requested_by IS NULL AND run_id IS NOT NULL;
UPDATE tasks SET requested_by = (SELECT a.requested_by FROM asks a WHERE a.id = tasks.ask_id) WHERE requested_by IS NULL AND ask_id IS NOT NULL;

-- Ready tasks for a box that serves one member only.
DROP INDEX tasks_ready_by;
CREATE INDEX tasks_ready_by ON tasks (account_id, requested_by, repo_id, template, priority, created_at, id)
  WHERE status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL;

-- +goose Down
DROP INDEX tasks_ready_by;
CREATE INDEX tasks_ready_by ON tasks (account_id, created_by, repo_id, template, priority, created_at, id)
  WHERE status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL;
ALTER TABLE sessions DROP COLUMN requested_by;
ALTER TABLE plans DROP COLUMN requested_by;
ALTER TABLE tasks DROP COLUMN requested_by;
ALTER TABLE asks DROP COLUMN requested_by;
