-- +goose Up
-- Tasks that were split between a template and its challenger, when they were made.
CREATE TABLE template_lanes (
  task_id    TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  template   TEXT NOT NULL, -- that was named
  lane       TEXT NOT NULL, -- that the task has got: template, or its challenger
  created_at BIGINT NOT NULL
);
CREATE INDEX template_lanes_of ON template_lanes (account_id, template, lane);
