-- +goose Up
-- How a pull request ended that was not merged: when, by whom, and why
-- ('cancelled': its task was; 'branch_deleted', 'nothing_left').
ALTER TABLE pulls ADD COLUMN closed_by TEXT;
ALTER TABLE pulls ADD COLUMN closed_why TEXT NOT NULL DEFAULT '';
-- Its task was cancelled: nothing is done about it by itself any more.
ALTER TABLE pulls ADD COLUMN abandoned_at BIGINT;
-- What only a person can do about it, and since when; '' is nothing.
ALTER TABLE pulls ADD COLUMN needs TEXT NOT NULL DEFAULT '';
ALTER TABLE pulls ADD COLUMN needs_at BIGINT;
-- The next round begins at the earliest then.
ALTER TABLE pulls ADD COLUMN attend_at BIGINT NOT NULL DEFAULT 0;
-- Where the round began, to tell whether it changed anything.
ALTER TABLE pulls ADD COLUMN round_sha TEXT NOT NULL DEFAULT '';
-- Facts about it are read from git again when a push may have changed them:
-- facts_want counts those pushes, facts_have is the count they were last read
-- at. The last push was by pushed_by.
ALTER TABLE pulls ADD COLUMN facts_want BIGINT NOT NULL DEFAULT 1;
ALTER TABLE pulls ADD COLUMN facts_have BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pulls ADD COLUMN pushed_by TEXT;

UPDATE pulls SET needs = 'asked', needs_at = (SELECT a.requested_at FROM pull_actions a WHERE a.pr_id = pulls.id AND a.state = 'pending')
  WHERE state = 'open' AND EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = pulls.id AND a.state = 'pending');
UPDATE pulls SET needs = 'spent', needs_at = updated_at WHERE state = 'open' AND needs = '' AND babysit = 'spent';
UPDATE pulls SET needs = 'declined', needs_at = updated_at WHERE state = 'open' AND needs = '' AND checks IN ('none', 'passed')
  AND NOT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = pulls.id AND a.state = 'approved')
  AND EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = pulls.id AND a.head_sha = pulls.head_sha AND a.state = 'skipped');
UPDATE pulls SET needs = 'expired', needs_at = updated_at WHERE state = 'open' AND needs = '' AND checks IN ('none', 'passed')
  AND NOT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = pulls.id AND a.state = 'approved')
  AND EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = pulls.id AND a.head_sha = pulls.head_sha AND a.state = 'expired');
UPDATE pulls SET needs = 'left_to_people', needs_at = updated_at WHERE state = 'open' AND needs = '' AND checks IN ('none', 'passed')
  AND NOT EXISTS (SELECT 1 FROM pull_actions a WHERE a.pr_id = pulls.id AND a.state IN ('pending', 'approved'));
UPDATE pulls SET abandoned_at = updated_at, babysit = 'off' WHERE state = 'open' AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = pulls.task_id AND t.status = 'cancelled');
CREATE INDEX pulls_facts ON pulls (updated_at) WHERE state = 'open' AND facts_have < facts_want;
CREATE INDEX pulls_abandoned ON pulls (abandoned_at) WHERE state = 'open' AND abandoned_at IS NOT NULL;

-- Tasks that wait for a decision about their pull request say so.
UPDATE tasks SET status = 'awaiting_review' WHERE status = 'mergeable' AND pr_id IN (SELECT id FROM pulls WHERE state = 'open' AND needs <> '');

-- What an escalation is about, so that it ends with it.
ALTER TABLE escalations ADD COLUMN pr_id TEXT;
ALTER TABLE escalations ADD COLUMN task_id TEXT;
CREATE INDEX escalations_pull ON escalations (pr_id) WHERE pr_id IS NOT NULL AND resolved_at IS NULL;

-- +goose Down
DROP INDEX escalations_pull;
ALTER TABLE escalations DROP COLUMN task_id;
ALTER TABLE escalations DROP COLUMN pr_id;
UPDATE tasks SET status = 'mergeable' WHERE status = 'awaiting_review';
DROP INDEX pulls_abandoned;
DROP INDEX pulls_facts;
ALTER TABLE pulls DROP COLUMN pushed_by;
ALTER TABLE pulls DROP COLUMN facts_have;
ALTER TABLE pulls DROP COLUMN facts_want;
ALTER TABLE pulls DROP COLUMN round_sha;
ALTER TABLE pulls DROP COLUMN attend_at;
ALTER TABLE pulls DROP COLUMN needs_at;
ALTER TABLE pulls DROP COLUMN needs;
ALTER TABLE pulls DROP COLUMN abandoned_at;
ALTER TABLE pulls DROP COLUMN closed_why;
ALTER TABLE pulls DROP COLUMN closed_by;
