-- +goose Up

-- When the merge that a person has approved begins at the earliest; until then it can be taken back. NULL: at once.
ALTER TABLE pull_actions ADD COLUMN begins_at BIGINT;

-- Programs that know the schema up to here work with it: they leave the column NULL.
INSERT INTO schema_releases (version, oldest, program) VALUES (730, 670, '');
