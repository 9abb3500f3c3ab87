-- +goose Up

-- Reviews that have a next step are entries of the queue "reviews". due_at and tries are read and
-- written by older releases alone, whose loops leave to the queue what they have not written
-- themselves: a later release drops both columns.
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'reviews', id, '0' || account_id, 'waits', due_at, due_at - 300000000, tries FROM review_runs
  WHERE stop OR carry OR ended_at IS NULL AND (state = 'queued' AND task_id IS NULL OR state = 'sorting');
DROP INDEX review_runs_due;
DROP INDEX review_runs_carry;
ALTER TABLE review_runs DROP COLUMN due_at;
ALTER TABLE review_runs ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
