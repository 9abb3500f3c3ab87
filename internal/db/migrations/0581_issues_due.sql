-- +goose Up

-- Issues that are to be read or filed, and walks through the issues of a repository, are entries
-- of the queues "issues" and "issue_walks". due_at and tries of issues are read and written by
-- older releases alone, whose loops leave to the queue what they have not written themselves: a
-- later release drops the columns. due_at of a walk stays: it says since when.
INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'issues', id, '0' || account_id, 'waits', due_at, due_at - 900000000 FROM issues WHERE due_at IS NOT NULL AND (reading OR filing);
UPDATE issues SET due_at = NULL WHERE due_at IS NOT NULL;
INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'issue_walks', w.repo_id, '0' || r.account_id, 'waits', w.due_at, w.due_at - 900000000
  FROM issue_walks w JOIN repos r ON r.id = w.repo_id WHERE w.due_at IS NOT NULL;
