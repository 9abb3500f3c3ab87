-- +goose Up

-- Repositories that are being made are entries of the queue "creations". due_at and tries are read
-- and written by older releases alone, whose loops leave to the queue what they have not written
-- themselves: a later release drops both columns.
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'creations', id, '0' || account_id, 'waits', due_at, created_at, tries - 1 FROM repo_creations WHERE ended_at IS NULL;
DROP INDEX repo_creations_due;
ALTER TABLE repo_creations DROP COLUMN due_at;
ALTER TABLE repo_creations ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
CREATE INDEX repo_creations_going ON repo_creations (id) WHERE ended_at IS NULL;
