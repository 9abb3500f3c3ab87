-- +goose Up

-- How often the row of a pull request was written: who writes it names the version that was read.
ALTER TABLE pulls ADD COLUMN version BIGINT NOT NULL DEFAULT 0;

-- Programs that know the schema up to here work with it: they lock the row before they write it.
INSERT INTO schema_releases (version, oldest, program) VALUES (725, 670, '');
