-- +goose Up

-- All that has to be done later. An entry says that a key of a queue is to be looked at; the row
-- that tells what is to be done there is its domain's own. Package db/due explains the columns.
CREATE TABLE due (
  queue   TEXT NOT NULL,
  key     TEXT NOT NULL,
  lane    TEXT NOT NULL,             -- rank and account
  state   TEXT NOT NULL,             -- waits, ready, held, aside
  due_at  BIGINT NOT NULL,           -- end of the wait or of the hold
  set_at  BIGINT NOT NULL,           -- when due_at was written; 0: it is a time of the calendar
  tries   BIGINT NOT NULL DEFAULT 0,
  more    BIGINT NOT NULL DEFAULT 0, -- 1: it was added while it was held
  fence   BIGINT NOT NULL DEFAULT 0, -- a random number of the claim
  holder  TEXT NOT NULL DEFAULT '',  -- the node that has it
  deaths  BIGINT NOT NULL DEFAULT 0, -- holds that ran out
  suspect BIGINT NOT NULL DEFAULT 0, -- 1: a hold ran out; it is worked on alone
  why     TEXT NOT NULL DEFAULT '',  -- of the last failed try
  PRIMARY KEY (queue, key)
) WITHOUT ROWID;
CREATE INDEX due_ready ON due (queue, suspect, lane, due_at) WHERE state = 'ready';
CREATE INDEX due_later ON due (due_at) WHERE state IN ('waits', 'held');
