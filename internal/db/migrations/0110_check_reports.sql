-- +goose Up
-- What a code host was told of a check that boxes run. told is the state that the host
-- has; due_at is when it is made sure of again, until the host has the end.
CREATE TABLE ci_reports (
  check_id   TEXT PRIMARY KEY REFERENCES ci_runs (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  told       TEXT NOT NULL DEFAULT '',
  due_at     BIGINT
);
CREATE INDEX ci_reports_due ON ci_reports (due_at) WHERE due_at IS NOT NULL;

-- +goose Down
SELECT 1;
