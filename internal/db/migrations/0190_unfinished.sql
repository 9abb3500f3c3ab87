-- +goose Up
-- Tasks that are not over: those that wait for people are found among them. The condition
-- is, word by word, queue.unfinished.
CREATE INDEX tasks_unfinished ON tasks (account_id, created_at, id)
  WHERE status IN ('pending', 'held', 'claimed', 'running', 'awaiting_ci', 'awaiting_review', 'mergeable');
DROP INDEX blockers_open; -- which this one serves as well
CREATE INDEX blockers_state ON blockers (account_id, state, created_at, id);

-- +goose Down
SELECT 1;
