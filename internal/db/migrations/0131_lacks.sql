-- +goose Up
-- The permission without which the code host takes no push of the server to a repository,
-- and which its owner has yet to grant; empty: none is known. No task is begun there meanwhile.
ALTER TABLE repos ADD COLUMN lacks TEXT NOT NULL DEFAULT '';

-- +goose Down
SELECT 1;
