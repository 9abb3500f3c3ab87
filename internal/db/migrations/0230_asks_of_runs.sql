-- +goose Up
-- Whose text is in an ask, which person has approved one that a run could not begin by itself,
-- and the budget of the task whose run has filed it, which its tasks have too.
ALTER TABLE asks ADD COLUMN strangers BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE asks ADD COLUMN approved_by TEXT;
ALTER TABLE asks ADD COLUMN budget_micros BIGINT;
UPDATE asks SET strangers = TRUE WHERE source IN ('inbound', 'issue', 'backlog');
-- What runs have asked of other repositories, and no judge has read yet, begins nothing: a
-- verdict without a scope is a link, a drop, or a question to a person.
UPDATE asks SET scopes = '[]' WHERE state = 'pending' AND source = 'run' AND repo_id IS NOT NULL
  AND repo_id <> (SELECT r.repo_id FROM runs r WHERE r.id = asks.run_id);
