-- +goose Up
-- What a task has cost is the sum of its sessions: each list of tasks asks for it, and so does
-- each question about a merge. Without it all sessions of the account are read.
CREATE INDEX sessions_task ON sessions (task_id) WHERE task_id IS NOT NULL;
