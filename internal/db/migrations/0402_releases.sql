-- +goose Up

-- The programs that boxes may run, one row for each build target.
CREATE TABLE releases (
  id           TEXT PRIMARY KEY,
  channel      TEXT NOT NULL,
  version      TEXT NOT NULL,
  target       TEXT NOT NULL,              -- as linux/amd64
  size         BIGINT NOT NULL,
  sha256       TEXT NOT NULL,
  signature    TEXT NOT NULL,              -- as minisign writes it
  signed_by    TEXT NOT NULL,              -- the public key
  oldest       TEXT NOT NULL DEFAULT '',   -- the oldest version that it can follow; '': any
  commit_sha   TEXT NOT NULL DEFAULT '',
  built_with   TEXT NOT NULL DEFAULT '',
  published_at BIGINT NOT NULL,
  halted_at    BIGINT,
  halted_by    TEXT,
  halted_why   TEXT NOT NULL DEFAULT '',
  UNIQUE (channel, version, target)
);
CREATE INDEX releases_newest ON releases (published_at, id);
