-- +goose Up
-- Until when the task waits of a run that was told to end because every key of its calls
-- rests; NULL: it was told so for another reason, or not at all.
ALTER TABLE runs ADD COLUMN halting_until BIGINT;
