-- +goose Up
-- What an action is to do besides a merge: the label, or the branch and commit of a round,
-- and why. tidied: the branch of a round is gone that was offered.
ALTER TABLE pull_actions ADD COLUMN details TEXT NOT NULL DEFAULT '{}';
ALTER TABLE pull_actions ADD COLUMN tidied BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
SELECT 1;
