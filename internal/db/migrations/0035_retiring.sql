-- +goose Up
-- A box that is decommissioned first hands back what it holds, and is revoked
-- then, or at retire_at at the latest; retire_by asked for it.
ALTER TABLE boxes ADD COLUMN retire_at BIGINT;
ALTER TABLE boxes ADD COLUMN retire_by TEXT;
CREATE INDEX boxes_retire ON boxes (retire_at) WHERE retire_at IS NOT NULL;

-- +goose Down
DROP INDEX boxes_retire;
ALTER TABLE boxes DROP COLUMN retire_by;
ALTER TABLE boxes DROP COLUMN retire_at;
