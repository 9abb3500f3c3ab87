-- +goose Up

-- Orders to merge a pull request that stand are entries of the queue "merges". due_at, tries and
-- claim are read and written by older releases alone, whose loops leave to the queue what they have
-- not written themselves: a later release drops the columns. retry_at says when one is tried again
-- that has failed. A node of an older release that carries an order out has it until due_at.
ALTER TABLE pull_actions ADD COLUMN retry_at BIGINT;
UPDATE pull_actions SET retry_at = due_at WHERE state = 'approved' AND kind = 'merge' AND error IS NOT NULL;
INSERT INTO due (queue, key, lane, state, due_at, set_at, tries)
  SELECT 'merges', id, '0' || account_id, 'waits', due_at, due_at - 120000000, CASE WHEN claim <> '' AND tries > 0 THEN tries - 1 ELSE tries END
  FROM pull_actions WHERE state = 'approved' AND kind = 'merge';
DROP INDEX pull_actions_due;
ALTER TABLE pull_actions DROP COLUMN due_at;
ALTER TABLE pull_actions ADD COLUMN due_at BIGINT NOT NULL DEFAULT 253402300799000000;

-- A program that knows the schema up to here works with it: what it orders is adopted by the queue, and it
-- leaves alone what the queue has.
INSERT INTO schema_releases (version, oldest, program) VALUES (680, 670, '');
