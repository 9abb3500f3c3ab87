-- +goose Up

-- The commit of the default branch that was recorded last: where it is not in the folder of the
-- repository, the folder is older than this row. '' is none.
ALTER TABLE repos ADD COLUMN head_sha TEXT NOT NULL DEFAULT '';
