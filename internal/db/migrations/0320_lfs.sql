-- +goose Up
-- The objects of Git LFS of repositories of the built-in host, and uploads under way: the
-- bytes are in the store of objects, under a key that ends in the id.
CREATE TABLE lfs_objects (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  oid        TEXT NOT NULL,             -- SHA-256 of the bytes, in hexadecimal digits
  size       BIGINT NOT NULL,           -- bytes
  begun_at   BIGINT NOT NULL,           -- when its upload began
  stored_at  BIGINT                     -- NULL: the upload has not ended
);
CREATE UNIQUE INDEX lfs_objects_stored ON lfs_objects (repo_id, oid) WHERE stored_at IS NOT NULL;
CREATE INDEX lfs_objects_account ON lfs_objects (account_id);
CREATE INDEX lfs_objects_begun ON lfs_objects (begun_at) WHERE stored_at IS NULL;
