-- +goose Up
-- The file .gitmodules of the default branch: whose repositories a run may read besides its
-- own. What is there is read once more, with the policy file.
ALTER TABLE repos ADD COLUMN gitmodules TEXT; -- NULL: there is none
UPDATE repos SET refresh_due = 1 WHERE enabled AND refresh_due IS NULL;
