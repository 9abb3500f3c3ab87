-- +goose Up
-- What the round that goes on repairs: conflict, ci, request or review; '': none goes on.
ALTER TABLE pulls ADD COLUMN round_of TEXT NOT NULL DEFAULT '';
-- Whether a person has asked for the round that goes on.
ALTER TABLE pulls ADD COLUMN round_asked BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE pulls SET round_of = 'ci' WHERE babysit = 'fixing_ci';
UPDATE pulls SET round_of = 'conflict', round_asked = (round_then = 'off') WHERE babysit = 'resolving_conflict';
UPDATE pulls SET round_of = CASE WHEN objections > remarks THEN 'request' ELSE 'review' END WHERE babysit = 'answering_review';
