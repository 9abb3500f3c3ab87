-- +goose Up

-- The rows of a chain up to cut_seq are gone, the last with cut_hash: what is left begins behind it.
-- The row cut_told of the chain says so. An older release takes such a chain for broken.
ALTER TABLE audit_heads ADD COLUMN cut_seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE audit_heads ADD COLUMN cut_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE audit_heads ADD COLUMN cut_told BIGINT NOT NULL DEFAULT 0;
