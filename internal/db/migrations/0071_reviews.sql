-- +goose Up
-- Reviews of pull requests by agents: their runs, what they found, and what people said is
-- no finding.
CREATE TABLE review_runs (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  repo_id TEXT NOT NULL,
  pr_id TEXT NOT NULL,
  head_sha TEXT NOT NULL,
  since_sha TEXT NOT NULL DEFAULT '',  -- the head that was reviewed before; '': the whole change
  merge_base TEXT NOT NULL,
  change TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL,
  template TEXT NOT NULL DEFAULT '',   -- of the finder
  task_id TEXT,                        -- the finder's
  verify_task_id TEXT,                 -- the verifier's
  blind TEXT NOT NULL DEFAULT '',      -- why there was no model
  note TEXT NOT NULL DEFAULT '',       -- why nothing was reviewed, or why it failed
  verdict TEXT,
  kept BIGINT,                         -- findings posted; NULL before the findings were known
  more BIGINT NOT NULL DEFAULT 0,      -- findings beyond the limits
  raw TEXT NOT NULL DEFAULT '',        -- the finder's answer, until it is sorted
  stop BOOLEAN NOT NULL DEFAULT FALSE, -- its tasks are to be stopped
  due_at BIGINT NOT NULL,              -- of the next step of the loop
  tries BIGINT NOT NULL DEFAULT 0,
  requested_by TEXT,
  created_at BIGINT NOT NULL,
  ended_at BIGINT
);
CREATE UNIQUE INDEX review_runs_open ON review_runs (pr_id) WHERE ended_at IS NULL;
CREATE INDEX review_runs_pull ON review_runs (pr_id, created_at);
CREATE INDEX review_runs_repo ON review_runs (account_id, repo_id, created_at);
CREATE INDEX review_runs_due ON review_runs (due_at) WHERE ended_at IS NULL OR stop;
CREATE INDEX review_runs_task ON review_runs (task_id);
CREATE INDEX review_runs_verify_task ON review_runs (verify_task_id);

CREATE TABLE review_findings (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  repo_id TEXT NOT NULL,
  pr_id TEXT NOT NULL,
  run_id TEXT NOT NULL REFERENCES review_runs (id),
  key TEXT NOT NULL,
  head_sha TEXT NOT NULL,              -- the lines count in it
  file TEXT NOT NULL,
  side TEXT NOT NULL,
  start_line BIGINT NOT NULL,          -- 0: one line
  line BIGINT NOT NULL,
  symbol TEXT NOT NULL,
  anchor TEXT NOT NULL,
  severity TEXT NOT NULL,
  kind TEXT NOT NULL,
  claim TEXT NOT NULL,
  why TEXT NOT NULL,
  how_to_see TEXT NOT NULL,
  suggestion TEXT NOT NULL DEFAULT '',
  confidence DOUBLE PRECISION NOT NULL DEFAULT 0,
  state TEXT NOT NULL,
  state_why TEXT NOT NULL DEFAULT '',
  evidence TEXT NOT NULL DEFAULT '',   -- of the verifier
  place_start BIGINT NOT NULL DEFAULT 0,
  place_line BIGINT NOT NULL DEFAULT 0, -- in the diff; 0: in the text of the review
  claim_no BIGINT NOT NULL DEFAULT 0,  -- its number among the claims that a verifier has; 0: it is not among them
  fixed_sha TEXT,
  dismissed_by TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX review_findings_pull ON review_findings (pr_id, created_at);
CREATE INDEX review_findings_run ON review_findings (run_id);
CREATE INDEX review_findings_repo ON review_findings (account_id, repo_id, state);

CREATE TABLE review_rules (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  repo_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  symbol TEXT NOT NULL,
  anchor TEXT NOT NULL,
  claim TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (repo_id, kind, symbol, anchor)
);

-- How far the review of the head has come: 'due' until it is known whether there is one,
-- then 'none', 'running' or 'done'. So many of its findings hold the merge.
ALTER TABLE pulls ADD COLUMN review TEXT NOT NULL DEFAULT 'none';
ALTER TABLE pulls ADD COLUMN review_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pulls ADD COLUMN findings BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pulls ADD COLUMN review_rounds BIGINT NOT NULL DEFAULT 0;
