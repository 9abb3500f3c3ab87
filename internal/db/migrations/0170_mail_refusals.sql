-- +goose Up
-- Addresses that a mail server has refused for good. Notifications are not sent there.
CREATE TABLE mail_refusals (
  address TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  refused_at BIGINT NOT NULL
);

-- There is a row while the mail server takes no mails at all. No mail is tried before
-- until.
CREATE TABLE mail_outages (
  server TEXT PRIMARY KEY,
  reason TEXT NOT NULL,
  tries BIGINT NOT NULL,
  since BIGINT NOT NULL,
  until BIGINT NOT NULL
);

-- failures are the tries that the mail itself is to blame for; tries counts leases.
ALTER TABLE mails ADD COLUMN failures BIGINT NOT NULL DEFAULT 0;
-- wanted_at is when a mail was to be sent first; 0: at created_at.
ALTER TABLE mails ADD COLUMN wanted_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX mails_waiting ON mails (state, id) WHERE state <> 'sent';
