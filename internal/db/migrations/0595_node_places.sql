-- +goose Up

-- When the node has stopped by itself: calls that it let in go on for a while.
ALTER TABLE nodes ADD COLUMN left_at BIGINT NOT NULL DEFAULT 0;

-- What nodes hold of something that all of them may hold so many of at once. A row counts while its
-- node lives, as the process that wrote it.
CREATE TABLE node_places (
  name    TEXT NOT NULL,     -- of what is held
  node_id TEXT NOT NULL,
  boot    TEXT NOT NULL,
  busy    BIGINT NOT NULL,   -- places that the node holds
  since   BIGINT NOT NULL,   -- from when on it waits for one; 0: it does not
  asked   BIGINT NOT NULL,   -- when it last asked for one
  PRIMARY KEY (name, node_id)
);
