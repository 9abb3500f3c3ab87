-- +goose Up
-- Where the MCP server is that a field was filled in for: no secret, the agent
-- is told. NULL for other fields.
ALTER TABLE blocker_fields ADD COLUMN url TEXT;
ALTER TABLE blocker_fields ADD COLUMN transport TEXT;

-- +goose Down
ALTER TABLE blocker_fields DROP COLUMN transport;
ALTER TABLE blocker_fields DROP COLUMN url;
