-- +goose Up
-- What became of a hand-off: queued, sent, delivered or failed, why it failed, and when that
-- was known. What was handed over before is taken for sent.
ALTER TABLE issue_handoffs ADD COLUMN failure TEXT;
ALTER TABLE issue_handoffs ADD COLUMN moved_at BIGINT;
UPDATE issue_handoffs SET state = 'sent' WHERE state = 'queued';
-- How often triage of an issue has begun anew; the host's time of the last label that counts,
-- so that no label counts twice; and whether the host was told that the work is done.
ALTER TABLE issues ADD COLUMN round BIGINT NOT NULL DEFAULT 0;
ALTER TABLE issues ADD COLUMN labelled_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE issues ADD COLUMN finished BOOLEAN NOT NULL DEFAULT FALSE;
-- The issue that an ask, and a question to people, is about, and its address at its host.
ALTER TABLE asks ADD COLUMN issue_id TEXT;
ALTER TABLE asks ADD COLUMN issue_url TEXT;
ALTER TABLE escalations ADD COLUMN issue_id TEXT;
-- The tasks that cover an ask without having been made for it.
CREATE TABLE ask_covers (
  task_id    TEXT NOT NULL REFERENCES tasks (id),
  ask_id     TEXT NOT NULL REFERENCES asks (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  PRIMARY KEY (task_id, ask_id)
);
