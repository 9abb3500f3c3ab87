-- +goose Up
-- The account of the run that a message to a box is for; NULL for other commands, and for
-- messages from before.
ALTER TABLE box_commands ADD COLUMN account_id TEXT;
