-- +goose Up

-- Accounts that were deleted, with the proof. No row of theirs is left that these could name.
CREATE TABLE departures (
  id             TEXT PRIMARY KEY,
  account_id     TEXT NOT NULL UNIQUE,
  login          TEXT NOT NULL,
  deletion       TEXT NOT NULL,            -- JSON: what was removed, and which files are to be
  begun_at       BIGINT NOT NULL,          -- when its rows went
  finished_at    BIGINT,                   -- when the last file had gone; NULL: some are left
  envelope       TEXT NOT NULL DEFAULT ''  -- the signed proof, once all is gone
);

-- Programs that know the schema up to here work with it.
INSERT INTO schema_releases (version, oldest, program) VALUES (705, 670, '');
