-- +goose Up
-- How a key of a provider does. Until rest_until no call goes over it; then one call tries it
-- out, until probe_until at most, and the others wait for what comes of that.
ALTER TABLE provider_keys ADD COLUMN rest_until BIGINT;
ALTER TABLE provider_keys ADD COLUMN rest_since BIGINT;
-- rate_limited, overloaded, exhausted, refused or failing; '' has not rested since it last worked.
ALTER TABLE provider_keys ADD COLUMN rest_why TEXT NOT NULL DEFAULT '';
ALTER TABLE provider_keys ADD COLUMN rests BIGINT NOT NULL DEFAULT 0; -- in a row
ALTER TABLE provider_keys ADD COLUMN slips BIGINT NOT NULL DEFAULT 0; -- calls that the provider failed, in a row
ALTER TABLE provider_keys ADD COLUMN probe_until BIGINT;
-- Counts the changes of the columns above, so that nobody takes an older reading for news.
ALTER TABLE provider_keys ADD COLUMN health_seq BIGINT NOT NULL DEFAULT 0;
