-- +goose Up

-- Messages to browsers are entries of the queue "push". due_at and tries are read and written by
-- older releases alone, whose loops leave to the queue what they have not written themselves: a
-- later release drops both columns.
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'push', subscription_id || '/' || topic, '0' || account_id, 'waits', due_at, created_at, tries FROM push_messages;
DROP INDEX push_messages_due;
ALTER TABLE push_messages DROP COLUMN due_at;
ALTER TABLE push_messages ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
