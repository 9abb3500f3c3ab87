-- +goose Up
-- The servers that serve this database now. A server adds to its beats every few
-- seconds; one that does not any more is gone.
CREATE TABLE servers (
  id         TEXT PRIMARY KEY,
  cluster    BOOLEAN NOT NULL,            -- it is configured to share the database
  name       TEXT NOT NULL,               -- for people
  process    TEXT NOT NULL,               -- tells, on its machine, whether it runs
  beats      BIGINT NOT NULL DEFAULT 0,
  started_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE servers;
