-- +goose Up
-- The statements about one commit, which its note has together.
CREATE INDEX provenances_commit ON provenances (repo_id, merge_sha);
