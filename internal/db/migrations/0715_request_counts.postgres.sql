-- +goose Up

-- The slots of buckets of requests that nodes have taken, by the second. Rows go after a minute, so a crash of the
-- database may empty the table: nothing is written ahead, and no commit waits for the disk.
CREATE UNLOGGED TABLE request_counts (
  bucket TEXT NOT NULL,   -- hash of its name
  second BIGINT NOT NULL,
  taken  BIGINT NOT NULL,
  PRIMARY KEY (bucket, second)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX request_counts_second ON request_counts (second);

-- Programs that know the schema up to here work with it: they count by themselves.
INSERT INTO schema_releases (version, oldest, program) VALUES (715, 670, '');
