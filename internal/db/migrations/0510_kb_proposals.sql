-- +goose Up

-- What runs would have pages say. Nothing of it is in a page before it is accepted.
CREATE TABLE kb_proposals (
  id         TEXT PRIMARY KEY,
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  slug       TEXT NOT NULL,
  run_id     TEXT NOT NULL,
  task_id    TEXT NOT NULL,
  declared   TEXT NOT NULL,                -- the run's own id of it
  base       BIGINT NOT NULL,              -- the version of the page that it was made of; 0: there was none
  kind       TEXT NOT NULL,                -- page: the whole text; note: put behind the text
  title      TEXT NOT NULL,
  body       TEXT NOT NULL,
  files      TEXT NOT NULL,
  commit_sha TEXT NOT NULL,                -- that the run looked at
  why        TEXT NOT NULL,
  state      TEXT NOT NULL,                -- judging, waiting, accepted, declined, outdated
  reason     TEXT NOT NULL,                -- of whoever decided, or why the judge did not
  decided_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  decided_at BIGINT
);
CREATE UNIQUE INDEX kb_proposals_declared ON kb_proposals (run_id, declared);
CREATE INDEX kb_proposals_repo ON kb_proposals (repo_id, id);
CREATE INDEX kb_proposals_open ON kb_proposals (repo_id, slug) WHERE decided_at IS NULL;
CREATE INDEX kb_proposals_judging ON kb_proposals (state) WHERE state = 'judging';

-- One row a repository: the task that keeps its pages.
CREATE TABLE kb_keepers (
  repo_id  TEXT PRIMARY KEY REFERENCES repos (id),
  asked_at BIGINT,                         -- since when pages are to be looked after; NULL: not
  filed_at BIGINT,                         -- when the newest task was filed
  task_id  TEXT
);
CREATE INDEX kb_keepers_asked ON kb_keepers (asked_at) WHERE asked_at IS NOT NULL;
