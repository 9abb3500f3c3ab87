-- What an agent has made and its work does not have: of a run, and of the runs that have
-- worked on a pull request. A list in JSON; NULL is nothing.

-- +goose Up
ALTER TABLE runs ADD COLUMN left_out TEXT;
ALTER TABLE pulls ADD COLUMN left_out TEXT;
