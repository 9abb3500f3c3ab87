-- +goose Up

-- Since when the bytes of a release are in the store of objects; NULL: they are not.
ALTER TABLE releases ADD COLUMN stored_at BIGINT;

-- Rollouts of a release to the boxes of an account. One of an account is under way at a time.
CREATE TABLE rollouts (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id),
  channel       TEXT NOT NULL,
  version       TEXT NOT NULL,
  state         TEXT NOT NULL,             -- preparing, canary, soaking, rolling, done, halted or cancelled
  wave          BIGINT NOT NULL DEFAULT 0, -- that is under way; 1 is the canary
  soak_s        BIGINT NOT NULL,
  soak_until    BIGINT,
  runs_before   BIGINT NOT NULL DEFAULT 0, -- that ended on the account's boxes in the week before
  failed_before BIGINT NOT NULL DEFAULT 0,
  runs_after    BIGINT NOT NULL DEFAULT 0, -- that ended on updated boxes
  failed_after  BIGINT NOT NULL DEFAULT 0,
  why           TEXT NOT NULL DEFAULT '',  -- it was halted
  started_by    TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  changed_at    BIGINT NOT NULL,
  ended_at      BIGINT
);
CREATE UNIQUE INDEX rollouts_live ON rollouts (account_id) WHERE ended_at IS NULL;
CREATE INDEX rollouts_newest ON rollouts (account_id, created_at, id);

-- The boxes of the account when it was started, and what became of each.
CREATE TABLE rollout_boxes (
  rollout_id   TEXT NOT NULL REFERENCES rollouts (id),
  box_id       TEXT NOT NULL REFERENCES boxes (id),
  wave         BIGINT NOT NULL,           -- 0: it takes no part
  state        TEXT NOT NULL,
  why          TEXT NOT NULL DEFAULT '',
  from_version TEXT NOT NULL,
  step         TEXT NOT NULL DEFAULT '',  -- the version that it was told to take last
  command_id   TEXT NOT NULL DEFAULT '',
  changed_at   BIGINT NOT NULL,
  PRIMARY KEY (rollout_id, box_id)
);

-- Which channel boxes follow, and which take no updates: one box, those with a label, or all.
CREATE TABLE update_pins (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL,             -- account, label or box
  ref        TEXT NOT NULL,             -- '', NAME=VALUE, or the id of the box
  channel    TEXT NOT NULL DEFAULT '',  -- '': that of the next wider scope
  pinned     BOOLEAN,                   -- NULL: as the next wider scope says
  why        TEXT NOT NULL DEFAULT '',
  set_by     TEXT NOT NULL,
  set_at     BIGINT NOT NULL,
  PRIMARY KEY (account_id, scope, ref)
);
