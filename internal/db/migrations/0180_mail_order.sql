-- +goose Up
-- notice is 1 for what people are told unasked: it is sent after what they wait for.
ALTER TABLE mails ADD COLUMN notice BIGINT NOT NULL DEFAULT 0;
-- Whose notice a mail is, and of which account; empty: nobody's own.
ALTER TABLE mails ADD COLUMN account_id TEXT NOT NULL DEFAULT '';
ALTER TABLE mails ADD COLUMN user_id TEXT NOT NULL DEFAULT '';
CREATE INDEX mails_next ON mails (notice, id) WHERE state = 'due';
