-- +goose Up

-- Issues that are to be opened at Linear are entries of the queue "tracker". due_at is read and
-- written by older releases alone, whose loops leave to the queue what they have not written
-- themselves: a later release drops it and its index.
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries, why)
  SELECT 'tracker', id, '0' || account_id, 'waits', due_at, created_at, tries, COALESCE(error, '')
  FROM tracker_issues WHERE due_at IS NOT NULL;
UPDATE tracker_issues SET due_at = NULL WHERE due_at IS NOT NULL;
CREATE INDEX tracker_issues_open ON tracker_issues (id) WHERE ended_at IS NULL;
