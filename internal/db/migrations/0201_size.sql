-- +goose Up
-- How much a pull request changes, as of its last look at the code host; NULL: nobody has looked.
ALTER TABLE pulls ADD COLUMN changed_files BIGINT;
ALTER TABLE pulls ADD COLUMN added_lines BIGINT;
ALTER TABLE pulls ADD COLUMN deleted_lines BIGINT;
UPDATE pulls SET facts_want = facts_want + 1 WHERE state = 'open';
