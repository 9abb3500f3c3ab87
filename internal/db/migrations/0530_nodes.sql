-- +goose Up

-- The nodes of a cluster, each of which renews its row by the database's clock.
CREATE TABLE nodes (
  id         TEXT PRIMARY KEY,  -- of the data folder
  boot       TEXT NOT NULL,     -- of the process: another one has taken the row over if it changes
  name       TEXT NOT NULL,     -- for people
  routes     TEXT NOT NULL,     -- host:port of its bus for other nodes
  door       TEXT NOT NULL,     -- host:port at which it answers other nodes
  boxes      TEXT NOT NULL,     -- addresses that boxes reach its bus at, with commas between
  version    TEXT NOT NULL,
  started_at BIGINT NOT NULL,
  seen_at    BIGINT NOT NULL
);

-- Which node has the folder of a repository of the built-in host.
CREATE TABLE git_homes (
  owner   TEXT NOT NULL,
  name    TEXT NOT NULL,
  node_id TEXT NOT NULL,
  PRIMARY KEY (owner, name)
);
CREATE INDEX git_homes_node ON git_homes (node_id);
