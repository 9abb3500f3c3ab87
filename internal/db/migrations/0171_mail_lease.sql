-- +goose Up
-- leased_until is until when a node is at sending the mail; 0: none is.
ALTER TABLE mails ADD COLUMN leased_until BIGINT NOT NULL DEFAULT 0;
