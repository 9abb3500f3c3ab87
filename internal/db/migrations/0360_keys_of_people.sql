-- +goose Up
-- Whose pool a key of a provider is in: that of the user, for what they ask for themselves,
-- or the account's ('').
ALTER TABLE provider_keys ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
-- Counts the secrets that a key has had, so that what a call said about one is not taken for
-- what the next one is worth.
ALTER TABLE provider_keys ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
CREATE INDEX provider_keys_user ON provider_keys (user_id) WHERE user_id <> '';
