-- +goose Up
-- What a merge came of, as it was signed. The bytes of an artifact end with its time; these stay.
CREATE TABLE provenances (
  pr_id        TEXT PRIMARY KEY REFERENCES pulls (id),
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  repo_id      TEXT NOT NULL REFERENCES repos (id),
  merge_sha    TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  envelope     TEXT NOT NULL DEFAULT '',    -- '': not signed yet
  public_key   TEXT NOT NULL DEFAULT '',    -- that verifies it
  signed_at    BIGINT,
  artifact_id  TEXT,
  artifact     TEXT NOT NULL DEFAULT 'due', -- due, stored or none
  artifact_why TEXT NOT NULL DEFAULT '',    -- why there is none
  note         TEXT NOT NULL DEFAULT 'due', -- due, written or none
  note_why     TEXT NOT NULL DEFAULT ''
);
CREATE INDEX provenances_account ON provenances (account_id);
CREATE INDEX provenances_open ON provenances (created_at) WHERE artifact = 'due' OR note = 'due';
-- The digest of what the agent of a run was told at its beginning; NULL: it was told nothing, or
-- that was before it was kept.
ALTER TABLE runs ADD COLUMN prompt_sha256 TEXT;
