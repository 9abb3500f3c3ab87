-- +goose Up
-- Boards of widgets, shared by an account or of one person.
CREATE TABLE dashboards (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  owner_id   TEXT NOT NULL DEFAULT '', -- user; empty: the account shares it
  name       TEXT NOT NULL,
  name_key   TEXT NOT NULL,            -- the name in small letters
  layout     TEXT NOT NULL,
  builtin    TEXT,                     -- which of the built-in ones it is; NULL: none
  version    BIGINT NOT NULL DEFAULT 0, -- of a built-in one
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX dashboards_name ON dashboards (account_id, owner_id, name_key);
CREATE UNIQUE INDEX dashboards_builtin ON dashboards (account_id, builtin) WHERE builtin IS NOT NULL;
CREATE TABLE dashboard_widgets (
  id           TEXT PRIMARY KEY,
  dashboard_id TEXT NOT NULL REFERENCES dashboards (id),
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  place        BIGINT NOT NULL,
  spec         TEXT NOT NULL
);
CREATE INDEX dashboard_widgets_board ON dashboard_widgets (account_id, dashboard_id, place);
-- Passes over all accounts that operators have asked for.
CREATE TABLE dashboard_syncs (
  id           TEXT PRIMARY KEY,
  state        TEXT NOT NULL, -- queued, running or done
  requested_by TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  due_at       BIGINT NOT NULL, -- until when another node leaves it alone
  finished_at  BIGINT,
  slot         BIGINT UNIQUE   -- 1 until it is done, so that there is one at a time; NULL then
);
