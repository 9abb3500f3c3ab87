-- +goose Up
-- Why the box can carry out no run, as it says itself. NULL: it can.
ALTER TABLE boxes ADD COLUMN unfit TEXT;

-- +goose Down
ALTER TABLE boxes DROP COLUMN unfit;
