-- +goose Up
-- The hash of the address without what follows a plus sign: all these are one mailbox.
ALTER TABLE email_routes ADD COLUMN mailbox TEXT NOT NULL DEFAULT '';
CREATE INDEX email_routes_mailbox ON email_routes (mailbox, asked_at);
