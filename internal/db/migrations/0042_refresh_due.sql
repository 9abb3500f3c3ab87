-- +goose Up
-- When the policy file of a repository is to be read again, since a merge moved
-- the default branch; NULL: it is as it was read last.
ALTER TABLE repos ADD COLUMN refresh_due BIGINT;
CREATE INDEX repos_refresh ON repos (refresh_due) WHERE refresh_due IS NOT NULL;

-- +goose Down
SELECT 1;
