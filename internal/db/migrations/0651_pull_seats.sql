-- +goose Up
-- Since when the queue of the account has no room for the round that is due; null: it has, or none is due.
ALTER TABLE pulls ADD COLUMN seat_since BIGINT;
-- Whether the code host refused to have the branches read, the last time that it was asked.
ALTER TABLE pulls ADD COLUMN unreadable BOOLEAN NOT NULL DEFAULT FALSE;
