-- +goose Up
-- The tasks at whose beginning a person is, newest first: task.list with filter=person:.
CREATE INDEX tasks_person ON tasks (account_id, requested_by, created_at, id) WHERE requested_by IS NOT NULL;
