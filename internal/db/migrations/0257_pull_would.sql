-- +goose Up
-- What the merge of an open pull request would do to its base, as it was last looked at.
ALTER TABLE pulls ADD COLUMN would TEXT;
-- Commits that the base was at: the last one, and those that the head has something of that the base has no more.
ALTER TABLE pulls ADD COLUMN had TEXT NOT NULL DEFAULT '[]';
-- In what the base differs after the merge from the merge that was tried, for people; '': in nothing.
ALTER TABLE pulls ADD COLUMN otherwise TEXT NOT NULL DEFAULT '';
UPDATE pulls SET facts_want = facts_want + 1 WHERE state = 'open';
