-- +goose Up

-- Schedules that have a next occurrence are entries of the queue "schedules". next_at stays what
-- people are shown; the loops of older releases go by it, too, and file no occurrence twice.
INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'schedules', id, '0' || account_id, 'waits', next_at, 0 FROM schedules WHERE next_at IS NOT NULL;
