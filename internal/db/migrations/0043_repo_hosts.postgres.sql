-- +goose Up
-- A name is unique at one host: two hosts may have a repository of the same name.
-- host_repo_id is the permanent id that the host gave a repository; '' at a host that
-- never renames one. Of an account's repositories of one name, at most one is enabled.
ALTER TABLE repos DROP CONSTRAINT repos_owner_name_key;
ALTER TABLE repos ADD COLUMN host_repo_id TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX repos_place ON repos (host, owner, name);
CREATE UNIQUE INDEX repos_host_repo_id ON repos (host, host_repo_id) WHERE host_repo_id <> '';
CREATE UNIQUE INDEX repos_enabled ON repos (account_id, owner, name) WHERE enabled;

-- +goose Down
SELECT 1;
