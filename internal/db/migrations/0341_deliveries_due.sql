-- +goose Up

-- Deliveries that are yet to be applied are entries of the queue "deliveries". tries is that of
-- the last outcome.
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries, why)
  SELECT 'deliveries', host || '/' || guid, '0', 'waits', due_at, received_at, tries, COALESCE(error, '')
  FROM host_deliveries WHERE ended_at IS NULL;
DROP INDEX host_deliveries_due;
ALTER TABLE host_deliveries DROP COLUMN due_at;
CREATE INDEX host_deliveries_open ON host_deliveries (host, guid) WHERE ended_at IS NULL;
