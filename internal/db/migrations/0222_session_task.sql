-- +goose Up
-- What a task has cost is the sum of its sessions: each list of tasks asks for it, and so does
-- each question about a merge. These indexes have the account too: without it SQLite takes one
-- of the account's as soon as a few tasks are asked for, or another filter is, and reads all of
-- its rows.
CREATE INDEX sessions_task ON sessions (task_id, account_id) WHERE task_id IS NOT NULL;
DROP INDEX sessions_run;
CREATE INDEX sessions_run ON sessions (run_id, account_id);
DROP INDEX pulls_task;
CREATE INDEX pulls_task ON pulls (task_id, account_id);
