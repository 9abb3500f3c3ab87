-- +goose Up

-- The slots of buckets of requests that nodes have taken, by the second. Rows go after a minute.
CREATE TABLE request_counts (
  bucket TEXT NOT NULL,   -- hash of its name
  second BIGINT NOT NULL,
  taken  BIGINT NOT NULL,
  PRIMARY KEY (bucket, second)
);
CREATE INDEX request_counts_second ON request_counts (second);
