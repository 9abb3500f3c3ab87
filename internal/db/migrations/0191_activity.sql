-- +goose Up
-- What the agent of a run does now: the title of the newest tool that it has called.
ALTER TABLE runs ADD COLUMN activity TEXT;

-- +goose Down
ALTER TABLE runs DROP COLUMN activity;
