-- +goose Up

-- Which claim of an order a node works by, so that one that was too slow changes nothing.
ALTER TABLE pull_actions ADD COLUMN claim TEXT NOT NULL DEFAULT '';
