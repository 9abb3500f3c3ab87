-- +goose Up

-- How often runs succeed, and how long questions wait, is read by the time at which they ended.
CREATE INDEX runs_ended ON runs (account_id, ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX pull_actions_decided ON pull_actions (account_id, decided_at) WHERE decided_at IS NOT NULL;
