-- +goose Up

-- What lanes that fan work out say of themselves, a row for each task that came to its end. It
-- names no account: it is about the platform. metrics is JSON, as the program that ran then had it.
CREATE TABLE lane_reports (
  task_id TEXT PRIMARY KEY,
  lane    TEXT NOT NULL,
  runner  TEXT NOT NULL,   -- version of the server that wrote it
  at      BIGINT NOT NULL,
  metrics TEXT NOT NULL
);
CREATE INDEX lane_reports_at ON lane_reports (at);
