-- +goose Up

-- Repositories whose pages are to be compared are entries of the queue "kb_pages". due_at stays: it
-- says since when, and the loops of older releases go by it.
INSERT INTO due (queue, key, lane, state, due_at, set_at)
  SELECT 'kb_pages', i.repo_id, '0' || r.account_id, 'ready', i.due_at, i.due_at
  FROM kb_indexes i JOIN repos r ON r.id = i.repo_id WHERE i.due_at IS NOT NULL;
