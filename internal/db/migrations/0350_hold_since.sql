-- +goose Up
-- Since when a repository holds its tasks: when it was switched off, became private, or was found
-- to lack a permission, and when its account got its tier. NULL: not known, from before this was
-- kept.
ALTER TABLE repos ADD COLUMN disabled_at BIGINT;
ALTER TABLE repos ADD COLUMN private_at BIGINT;
ALTER TABLE repos ADD COLUMN lacks_at BIGINT;
ALTER TABLE accounts ADD COLUMN tier_at BIGINT;
