-- +goose Up
-- Whether git of a task goes without the token that its requester has bound: somebody else
-- has had a say in what the task does.
ALTER TABLE tasks ADD COLUMN unbound BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
SELECT 1;
