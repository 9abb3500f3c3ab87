-- +goose Up
-- The review of a head is done only if a run has come to a verdict about it.
UPDATE pulls SET review = 'none' WHERE review = 'done' AND NOT EXISTS (SELECT 1 FROM review_runs r
  WHERE r.account_id = pulls.account_id AND r.pr_id = pulls.id AND r.head_sha = pulls.head_sha
  AND r.state = 'completed' AND r.blind = '' AND r.verdict IS NOT NULL);
