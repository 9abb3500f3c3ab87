-- +goose Up
-- The places of repositories whose contents of Git LFS were sent before their first push. The push that
-- makes the repository takes the id; what is never pushed to is forgotten with its objects.
CREATE TABLE lfs_begun (
  id         TEXT PRIMARY KEY,   -- of the repository to be
  account_id TEXT NOT NULL REFERENCES accounts (id),
  owner      TEXT NOT NULL,
  name       TEXT NOT NULL,
  begun_at   BIGINT NOT NULL
);
CREATE UNIQUE INDEX lfs_begun_place ON lfs_begun (owner, name);
CREATE INDEX lfs_begun_account ON lfs_begun (account_id);

CREATE TABLE lfs_kept (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL,             -- of a repository, or of one to be
  oid        TEXT NOT NULL,             -- SHA-256 of the bytes, in hexadecimal digits
  size       BIGINT NOT NULL,           -- bytes
  begun_at   BIGINT NOT NULL,           -- when its upload began
  stored_at  BIGINT,                    -- NULL: the upload has not ended, or the object is given up
  told_at    BIGINT NOT NULL DEFAULT 0  -- when somebody who pushes was last told that it is there, or its upload began
);
INSERT INTO lfs_kept (id, account_id, repo_id, oid, size, begun_at, stored_at, told_at)
  SELECT id, account_id, repo_id, oid, size, begun_at, stored_at, COALESCE(stored_at, begun_at) FROM lfs_objects;
DROP TABLE lfs_objects;
ALTER TABLE lfs_kept RENAME TO lfs_objects;
CREATE UNIQUE INDEX lfs_objects_stored ON lfs_objects (repo_id, oid) WHERE stored_at IS NOT NULL;
CREATE INDEX lfs_objects_account ON lfs_objects (account_id);
CREATE INDEX lfs_objects_begun ON lfs_objects (begun_at) WHERE stored_at IS NULL;

-- Programs that know the schema up to here work with it: what they store is kept as long as any other.
INSERT INTO schema_releases (version, oldest, program) VALUES (695, 670, '');

-- +goose Down
DELETE FROM lfs_objects WHERE repo_id NOT IN (SELECT id FROM repos);
CREATE TABLE lfs_kept (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  oid        TEXT NOT NULL,
  size       BIGINT NOT NULL,
  begun_at   BIGINT NOT NULL,
  stored_at  BIGINT
);
INSERT INTO lfs_kept (id, account_id, repo_id, oid, size, begun_at, stored_at)
  SELECT id, account_id, repo_id, oid, size, begun_at, stored_at FROM lfs_objects;
DROP TABLE lfs_objects;
ALTER TABLE lfs_kept RENAME TO lfs_objects;
CREATE UNIQUE INDEX lfs_objects_stored ON lfs_objects (repo_id, oid) WHERE stored_at IS NOT NULL;
CREATE INDEX lfs_objects_account ON lfs_objects (account_id);
CREATE INDEX lfs_objects_begun ON lfs_objects (begun_at) WHERE stored_at IS NULL;
DROP TABLE lfs_begun;
