-- +goose Up

-- Answers to questions about repositories, for who asked; the last of each.
CREATE TABLE answers (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  asker      TEXT NOT NULL,                -- the person, or the credential that names none
  question   TEXT NOT NULL,
  answer     TEXT NOT NULL,                -- as it was given
  marks      TEXT NOT NULL,                -- what finds the lines of each citation again
  asked_at   BIGINT NOT NULL
);
CREATE INDEX answers_asker ON answers (repo_id, asker, id);
