-- +goose Up
-- What each level of isolation held when the box last tried it, by level, in JSON.
ALTER TABLE boxes ADD COLUMN isolation_holds TEXT NOT NULL DEFAULT '{}';
-- What the run's level held on its box. NULL: the agent has not started, or its
-- box did not say.
ALTER TABLE runs ADD COLUMN isolation_holds TEXT;

-- +goose Down
ALTER TABLE runs DROP COLUMN isolation_holds;
ALTER TABLE boxes DROP COLUMN isolation_holds;
