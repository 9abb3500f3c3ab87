-- +goose Up
-- What an account holds the policy files of all its repositories to, as JSON.
CREATE TABLE account_floors (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  floors     TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  updated_by TEXT NOT NULL
);

-- What a merge would change that a person is asked about first, as JSON. NULL:
-- nothing, or it was not looked at yet.
ALTER TABLE pull_actions ADD COLUMN protected TEXT;
-- The head whose merge was looked at. A pull request whose head is another is
-- looked at when its checks have passed.
ALTER TABLE pulls ADD COLUMN looked_sha TEXT NOT NULL DEFAULT '';
CREATE INDEX pulls_unlooked ON pulls (updated_at) WHERE state = 'open' AND looked_sha <> head_sha;

-- +goose Down
DROP INDEX pulls_unlooked;
ALTER TABLE pulls DROP COLUMN looked_sha;
ALTER TABLE pull_actions DROP COLUMN protected;
DROP TABLE account_floors;
