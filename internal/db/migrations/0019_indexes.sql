-- +goose Up
-- What loops look for, while most rows are settled long since.
CREATE INDEX ci_runs_open ON ci_runs (task_id) WHERE finished_at IS NULL;
CREATE INDEX runs_cut ON runs (ended_at) WHERE outcome IN ('lost', 'interrupted');
