-- +goose Up

-- Digests are entries of the queue "digests", two an account. Accounts that have none get them
-- within the hour. A server of an older release makes no digests any more, and says so.
INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'digests', account_id || '/' || kind, '0' || account_id, 'waits', due_at, 0 FROM digest_dues;
DROP TABLE digest_dues;
