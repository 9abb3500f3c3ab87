-- +goose Up
-- The permanent id of a person at a code host, whose login there may change; '' for tokens
-- that were stored before it was kept.
ALTER TABLE host_tokens ADD COLUMN host_user_id TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 1;
