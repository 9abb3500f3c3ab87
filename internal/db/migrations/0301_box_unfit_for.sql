-- The repositories of which a box can carry out no run, with the reasons: an object in JSON
-- by owner/name, as its newest beat says. NULL is none.

-- +goose Up
ALTER TABLE boxes ADD COLUMN unfit_for TEXT;
