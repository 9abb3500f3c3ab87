-- +goose Up
-- What was none is off; what became of a review that did not look is known from its next word on.
UPDATE pulls SET review = 'off' WHERE review = 'none';
UPDATE pulls SET review = 'reviewed' WHERE review = 'done';
-- What the change of the head should not have; NULL while nobody has looked.
ALTER TABLE pulls ADD COLUMN unwanted TEXT;
UPDATE pulls SET facts_want = facts_want + 1 WHERE state = 'open';
