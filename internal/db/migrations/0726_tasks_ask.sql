-- +goose Up

-- What was made for an ask, when one of it is merged.
CREATE INDEX tasks_ask ON tasks (ask_id) WHERE ask_id IS NOT NULL;

-- Programs that know the schema up to here work with it.
INSERT INTO schema_releases (version, oldest, program) VALUES (726, 670, '');
