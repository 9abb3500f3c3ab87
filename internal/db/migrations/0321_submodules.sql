-- +goose Up
-- The file .gitmodules of the default branch: whose repositories a run may read besides its
-- own. It is read with the policy file.
ALTER TABLE repos ADD COLUMN gitmodules TEXT; -- NULL: there is none
