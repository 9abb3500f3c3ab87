-- +goose Up

-- The intents of an object of a repository are an entry of the queue "intents", which the oldest
-- of them that has not ended waits in. due_at, limited and the state 'doing' are read and written
-- by older releases alone, whose loops leave to the queue what they have not written themselves: a
-- later release drops the columns. limited_until says until when an intent waits for a limit of
-- the host.
ALTER TABLE host_intents ADD COLUMN limited_until BIGINT;
UPDATE host_intents SET limited_until = due_at WHERE limited AND ended_at IS NULL;
UPDATE host_intents SET state = 'due' WHERE state = 'doing';
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'intents', h.repo_id || '/' || h.object, CAST(h.rank AS TEXT) || h.account_id, 'waits', h.due_at, h.due_at - 900000000, h.tries
  FROM host_intents h WHERE h.ended_at IS NULL AND NOT EXISTS (SELECT 1 FROM host_intents e
    WHERE e.repo_id = h.repo_id AND e.object = h.object AND e.ended_at IS NULL AND e.id < h.id);
DROP INDEX host_intents_due;
ALTER TABLE host_intents DROP COLUMN due_at;
ALTER TABLE host_intents ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
