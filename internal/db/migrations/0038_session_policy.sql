-- +goose Up
-- The policy that a session's run was under when it began: what a replay holds a
-- candidate against.
ALTER TABLE sessions ADD COLUMN policy TEXT;

-- What the platform began runs for was not told apart before.
UPDATE sessions SET trigger = 'check' WHERE kind = 'ci' AND trigger = 'task';
UPDATE sessions SET trigger = 'babysit' WHERE kind = 'babysit' AND trigger = 'task';
UPDATE sessions SET trigger = 'plan' WHERE trigger = 'task' AND task_id IN (SELECT id FROM tasks WHERE plan_id IS NOT NULL);
UPDATE sessions SET trigger = 'plan' WHERE trigger = 'task' AND task_id IN (SELECT task_id FROM plan_fanout_tasks);
UPDATE sessions SET trigger = 'ask' WHERE trigger = 'task' AND task_id IN (SELECT id FROM tasks WHERE ask_id IS NOT NULL AND created_by = 'system');

-- +goose Down
UPDATE sessions SET trigger = 'task' WHERE run_id IS NOT NULL;
ALTER TABLE sessions DROP COLUMN policy;
