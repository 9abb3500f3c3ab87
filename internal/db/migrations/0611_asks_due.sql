-- +goose Up

-- Asks that wait for a judge are entries of the queue "asks". due_at, claim and tries are read and
-- written by older releases alone, whose loops leave to the queue what they have not written
-- themselves: a later release drops the columns.
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'asks', id, '0' || account_id, 'waits', due_at, due_at - 1800000000, tries FROM asks WHERE state = 'pending';
DROP INDEX asks_due;
CREATE INDEX asks_pending ON asks (id) WHERE state = 'pending';
ALTER TABLE asks DROP COLUMN due_at;
ALTER TABLE asks ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
