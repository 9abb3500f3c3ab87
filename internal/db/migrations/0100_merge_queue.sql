-- +goose Up
-- The heads that are checked together before they are merged into a base. sha is the
-- candidate: the base with all heads merged. try counts the candidates of the batch; ref
-- is the branch of the candidate at the host, and ref_due when that is to be deleted.
CREATE TABLE merge_batches (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  base_ref   TEXT NOT NULL,
  state      TEXT NOT NULL,
  base_sha   TEXT NOT NULL DEFAULT '',
  sha        TEXT NOT NULL DEFAULT '',
  tree       TEXT NOT NULL DEFAULT '',
  ref        TEXT NOT NULL DEFAULT '',
  ref_due    BIGINT,
  task_id    TEXT NOT NULL DEFAULT '',
  command    TEXT NOT NULL DEFAULT '',
  try        BIGINT NOT NULL DEFAULT 1,
  prints     TEXT NOT NULL DEFAULT '[]',
  why        TEXT NOT NULL DEFAULT '',
  due_at     BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at   BIGINT
);
-- One base has one batch in flight.
CREATE UNIQUE INDEX merge_batches_open ON merge_batches (repo_id, base_ref) WHERE ended_at IS NULL;
CREATE INDEX merge_batches_sha ON merge_batches (repo_id, sha);
CREATE INDEX merge_batches_refs ON merge_batches (ref_due) WHERE ref_due IS NOT NULL;

-- The orders to merge that wait for their turn: in a queue of the server (own) or of the
-- host (host). most limits the batch of an entry after a larger one has failed. expects
-- is the commit that the base must be at for the merge.
CREATE TABLE merge_entries (
  id         TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  base_ref   TEXT NOT NULL,
  pr_id      TEXT NOT NULL,
  number     BIGINT NOT NULL,
  action_id  TEXT NOT NULL,
  head_sha   TEXT NOT NULL,
  kind       TEXT NOT NULL,
  state      TEXT NOT NULL,
  batch_id   TEXT NOT NULL DEFAULT '',
  place      BIGINT NOT NULL DEFAULT 0,
  most       BIGINT NOT NULL DEFAULT 0,
  expects    TEXT NOT NULL DEFAULT '',
  group_sha  TEXT NOT NULL DEFAULT '',
  reason     TEXT NOT NULL DEFAULT '',
  why        TEXT NOT NULL DEFAULT '',
  log        TEXT NOT NULL DEFAULT '',
  ordered_at BIGINT NOT NULL,
  entered_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  left_at    BIGINT
);
CREATE UNIQUE INDEX merge_entries_open ON merge_entries (pr_id) WHERE left_at IS NULL;
CREATE INDEX merge_entries_line ON merge_entries (repo_id, base_ref, ordered_at) WHERE left_at IS NULL;
CREATE INDEX merge_entries_pull ON merge_entries (pr_id, head_sha);

-- What the checks said of a tree, so that none is checked twice.
CREATE TABLE merge_results (
  repo_id    TEXT NOT NULL REFERENCES repos (id),
  tree       TEXT NOT NULL,
  command    TEXT NOT NULL,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  passed     BOOLEAN NOT NULL,
  why        TEXT NOT NULL,
  log        TEXT NOT NULL,
  at         BIGINT NOT NULL,
  PRIMARY KEY (repo_id, tree, command)
);
CREATE INDEX merge_results_at ON merge_results (at);

-- +goose Down
SELECT 1;
