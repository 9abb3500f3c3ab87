-- +goose Up
-- What calls over a key that another account has given have cost that one: they stand in the days of
-- who made them with a cost of nothing.
ALTER TABLE spend_days ADD COLUMN given_micros BIGINT NOT NULL DEFAULT 0;

-- What a call over a key may cost is found by the key alone.
CREATE INDEX budget_limits_ref ON budget_limits (ref);

-- Programs that know the schema up to here work with it.
INSERT INTO schema_releases (version, oldest, program) VALUES (745, 670, '');
