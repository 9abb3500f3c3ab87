-- +goose Up
-- The digest of the bytes of an artifact, as whoever stored it says.
ALTER TABLE artifacts ADD COLUMN sha256 TEXT NOT NULL DEFAULT '';
