-- +goose Up
-- Whether a later review has said in the thread of a finding that it is worse.
ALTER TABLE review_findings ADD COLUMN raised BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
SELECT 1;
