-- +goose Up
-- What a webhook understands, and the person whose own it is: NULL for those of the
-- account.
ALTER TABLE webhooks ADD COLUMN format TEXT NOT NULL DEFAULT 'json';
ALTER TABLE webhooks ADD COLUMN user_id TEXT REFERENCES users (id);
