-- +goose Up
-- What a node that seems dead still held counts as spent, and is kept a while:
-- a node that is not dead after all takes it back.
ALTER TABLE reservations ADD COLUMN written_off BOOLEAN NOT NULL DEFAULT FALSE;
