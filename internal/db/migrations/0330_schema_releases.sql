-- +goose Up

-- Which programs may work on a schema. A migration that an older release can live with says so by
-- a row of its own version; of any other, a release that does not know it refuses the database.
CREATE TABLE schema_releases (
  version BIGINT PRIMARY KEY,
  oldest  BIGINT NOT NULL, -- the newest migration that a program must know at least
  program TEXT NOT NULL    -- the version of the program that applied it; empty until it has
);
