-- +goose Up

-- Accounts that an owner has asked to have deleted. The row goes with the account.
CREATE TABLE account_closures (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  asked_by   TEXT NOT NULL,            -- user
  asked_at   BIGINT NOT NULL,
  ends_at    BIGINT NOT NULL,          -- from when on it cannot be taken back
  begun_at   BIGINT,                   -- when the deletion began; NULL: it can be taken back
  last_error TEXT NOT NULL DEFAULT ''  -- what keeps it from going on
);

-- What is left to do after the rows are gone, as JSON: whom the proof is mailed to, and which mails
-- that are files are to be removed. Empty once the proof is made.
ALTER TABLE departures ADD COLUMN rest TEXT NOT NULL DEFAULT '{}';

-- Programs that know the schema up to here work with it: they begin no deletion, and end none.
INSERT INTO schema_releases (version, oldest, program) VALUES (740, 670, '');
