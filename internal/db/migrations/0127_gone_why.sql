-- +goose Up
-- Why the server lost its access to a repository, as the event repo.out_of_reach says;
-- empty: it has access, or lost it before this was kept.
ALTER TABLE repos ADD COLUMN gone_why TEXT NOT NULL DEFAULT '';
