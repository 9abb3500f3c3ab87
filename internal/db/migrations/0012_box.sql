-- +goose Up
-- What became of the messages to a run, and what its agent declared.
CREATE INDEX run_events_messages ON run_events (run_id, seq) WHERE kind = 'user.message';
CREATE INDEX run_events_declared ON run_events (run_id, seq) WHERE kind IN ('ask.filed', 'blocker.declared');

-- +goose Down
SELECT 1;
