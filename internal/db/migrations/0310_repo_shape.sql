-- +goose Up
-- The branch that keeps the service from making its own ones, such as svc; '': none does.
ALTER TABLE repos ADD COLUMN in_the_way TEXT NOT NULL DEFAULT '';
-- Whether the default branch has no commit.
ALTER TABLE repos ADD COLUMN unborn BOOLEAN NOT NULL DEFAULT FALSE;
-- A file that looks like the policy file and is not; '': there is none, or the policy file is there.
ALTER TABLE repos ADD COLUMN policy_near TEXT NOT NULL DEFAULT '';
