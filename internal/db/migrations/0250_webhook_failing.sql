-- +goose Up
-- Since when no attempt at a webhook has succeeded; NULL: the last one did, or none was made.
ALTER TABLE webhooks ADD COLUMN failing_since BIGINT;
