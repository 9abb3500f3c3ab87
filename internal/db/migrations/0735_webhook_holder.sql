-- +goose Up

-- Which process has a delivery in work, so that those of one that is gone are taken at once.
ALTER TABLE webhook_deliveries ADD COLUMN holder TEXT NOT NULL DEFAULT '';
CREATE INDEX webhook_deliveries_held ON webhook_deliveries (holder) WHERE holder <> '';

-- Programs that know the schema up to here work with it: what they hold waits for the end of its lease.
INSERT INTO schema_releases (version, oldest, program) VALUES (735, 670, '');
