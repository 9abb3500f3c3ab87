-- +goose Up
-- When a parked run was last sent a message that it has not begun on.
ALTER TABLE runs ADD COLUMN woken_at BIGINT;

-- The rounds in which agents repair a pull request: their state, how many of
-- each kind were used since it was armed, how many were forgiven in all, and
-- the task of the round that goes on.
ALTER TABLE pulls ADD COLUMN babysit TEXT NOT NULL DEFAULT 'off';
ALTER TABLE pulls ADD COLUMN ci_rounds BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pulls ADD COLUMN conflict_rounds BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pulls ADD COLUMN forgiven BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pulls ADD COLUMN armed_at BIGINT;
ALTER TABLE pulls ADD COLUMN babysit_task TEXT;
CREATE INDEX pulls_babysit ON pulls (updated_at) WHERE babysit = 'watching' AND state = 'open';

-- +goose Down
SELECT 1;
