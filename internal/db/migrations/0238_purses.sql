-- +goose Up
-- Which task's run has filed an ask, and the limits of all tasks that were minted for it
-- together: what a task begins through its asks has its limit once.
ALTER TABLE asks ADD COLUMN from_task TEXT;
ALTER TABLE asks ADD COLUMN minted_micros BIGINT NOT NULL DEFAULT 0;
CREATE INDEX asks_from_task ON asks (from_task, account_id) WHERE from_task IS NOT NULL;
