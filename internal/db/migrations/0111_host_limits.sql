-- +goose Up
-- What code hosts have said of their limits, for all nodes. payer is whom the host counts
-- calls for.
CREATE TABLE host_limits (
  host      TEXT NOT NULL,
  payer     TEXT NOT NULL,
  resource  TEXT NOT NULL,
  most      BIGINT NOT NULL,
  remaining BIGINT NOT NULL,
  reset_at  BIGINT NOT NULL,
  PRIMARY KEY (host, payer, resource)
);
-- The pace of all nodes: when the next write may begin, and when contents were made in
-- the last hour. Nobody calls before blocked_until.
CREATE TABLE host_paces (
  host          TEXT NOT NULL,
  payer         TEXT NOT NULL,
  blocked_until BIGINT NOT NULL DEFAULT 0,
  next_write_at BIGINT NOT NULL DEFAULT 0,
  contents      TEXT NOT NULL DEFAULT '[]',
  touched_at    BIGINT NOT NULL,
  PRIMARY KEY (host, payer)
);

-- +goose Down
SELECT 1;
