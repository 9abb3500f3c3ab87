-- +goose Up

-- Mails about questions are entries of the queue "approval_mails". due_at and tries are read and
-- written by older releases alone, whose loops leave to the queue what they have not written
-- themselves: a later release drops both columns.
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'approval_mails', action_id, '0' || account_id, 'waits', due_at, due_at - 600000000, tries FROM approval_mails;
DROP INDEX approval_mails_due;
ALTER TABLE approval_mails DROP COLUMN due_at;
ALTER TABLE approval_mails ADD COLUMN due_at BIGINT NOT NULL DEFAULT 9223372036854775807;
