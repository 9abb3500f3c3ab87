-- +goose Up

-- Since when the events of a run are gone, but for what it stored, filed and declared, and its last
-- one; null: all are there.
ALTER TABLE runs ADD COLUMN events_reaped_at BIGINT;
CREATE INDEX runs_reap ON runs (ended_at) WHERE ended_at IS NOT NULL AND events_reaped_at IS NULL;
