-- +goose Up
-- How often an ask was asked for: once, and once more with each delivery of another
-- system that tells of the same trouble. last_seen_at is the last of these; NULL: none.
ALTER TABLE asks ADD COLUMN count BIGINT NOT NULL DEFAULT 1;
ALTER TABLE asks ADD COLUMN last_seen_at BIGINT;

-- +goose Down
SELECT 1;
