-- +goose Up
-- That somebody was asked to have a box take their work in an account, and has agreed.
CREATE TABLE box_consents (
  box_id     TEXT NOT NULL REFERENCES boxes (id),
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  asked_at   BIGINT NOT NULL,
  asked_by   TEXT NOT NULL,
  agreed_at  BIGINT, -- NULL: not yet
  PRIMARY KEY (box_id, account_id, user_id)
);
CREATE INDEX box_consents_user ON box_consents (user_id);
CREATE INDEX box_consents_account ON box_consents (account_id);
CREATE INDEX boxes_owner ON boxes (owner_id) WHERE owner_target = 'user';
-- Whether boxes of other accounts, whose owners have agreed, may take work of the account.
ALTER TABLE account_floors ADD COLUMN outside_boxes BOOLEAN NOT NULL DEFAULT FALSE;
-- By what right the box holds the run. Runs from before have none on record.
ALTER TABLE runs ADD COLUMN box_right TEXT;
ALTER TABLE runs ADD COLUMN consent_by TEXT;
ALTER TABLE runs ADD COLUMN consent_at BIGINT;
