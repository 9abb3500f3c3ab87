-- +goose Up

-- Passes over the boards of all accounts are entries of the queue "dashboard_syncs". due_at is read
-- and written by older releases alone: a later release drops it.
INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'dashboard_syncs', id, '0', 'ready', due_at, due_at FROM dashboard_syncs WHERE state <> 'done';
ALTER TABLE dashboard_syncs DROP COLUMN due_at;
ALTER TABLE dashboard_syncs ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
