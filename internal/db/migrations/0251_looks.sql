-- +goose Up
-- Findings that a verifier has still to look at again, and those that were dismissed for the
-- repository: until now, all that were dismissed.
ALTER TABLE review_findings ADD COLUMN unlooked BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE review_findings ADD COLUMN ruled BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE review_findings SET ruled = TRUE WHERE state = 'dismissed';
-- What a stale finding was before its pull request was over.
ALTER TABLE review_findings ADD COLUMN was TEXT NOT NULL DEFAULT '';
-- So many of them a run has left over. Findings are to be followed to its head.
ALTER TABLE review_runs ADD COLUMN unlooked BIGINT NOT NULL DEFAULT 0;
ALTER TABLE review_runs ADD COLUMN carry BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX review_runs_carry ON review_runs (due_at) WHERE carry;

-- +goose Down
SELECT 1;
