-- +goose Up
-- By this, asks of one source are listed, newest first.
CREATE INDEX asks_source ON asks (account_id, source, created_at, id);
