-- +goose Up
-- Of two indexes that would do SQLite takes the one with more columns that are
-- given, or either. These have as many as the index over all rows.
DROP INDEX blockers_open;
CREATE INDEX blockers_open ON blockers (account_id, state, created_at, id) WHERE state = 'open';
DROP INDEX tasks_waiting;
CREATE INDEX tasks_waiting ON tasks (account_id, status, created_at, id)
  WHERE status = 'pending' AND (waiting_deps > 0 OR not_before > 0 OR conflict_with IS NOT NULL);

-- +goose Down
DROP INDEX blockers_open;
CREATE INDEX blockers_open ON blockers (account_id, created_at, id) WHERE state = 'open';
DROP INDEX tasks_waiting;
CREATE INDEX tasks_waiting ON tasks (account_id, created_at, id)
  WHERE status = 'pending' AND (waiting_deps > 0 OR not_before > 0 OR conflict_with IS NOT NULL);
