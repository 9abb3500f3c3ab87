-- +goose Up
-- What happened in sessions that belong to no run; a run's session has the
-- run's own events.
CREATE TABLE session_events (
  session_id TEXT NOT NULL REFERENCES sessions (id),
  seq        BIGINT NOT NULL,
  at         BIGINT NOT NULL,
  kind       TEXT NOT NULL,
  data       TEXT NOT NULL,
  PRIMARY KEY (session_id, seq)
);
