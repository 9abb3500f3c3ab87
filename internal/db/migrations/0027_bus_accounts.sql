-- +goose Up
-- The NATS account of a box, its own alone. NULL: it has none yet, and is given
-- one the next time that it asks for credentials.
ALTER TABLE boxes ADD COLUMN nats_account TEXT;
CREATE UNIQUE INDEX boxes_nats_account ON boxes (nats_account);
-- The key that secrets for the box's present process are sealed to.
ALTER TABLE boxes ADD COLUMN seal_key TEXT NOT NULL DEFAULT '';
-- Boxes ask for their commands themselves.
ALTER TABLE boxes DROP COLUMN sending_until;
-- What the bus has to shut of a key that was revoked.
ALTER TABLE revoked_keys ADD COLUMN account TEXT;
-- Bytes of the run's events, so that a run cannot fill the database.
ALTER TABLE runs ADD COLUMN event_bytes BIGINT NOT NULL DEFAULT 0;
-- Whether the run's process has had the secrets; secrets_key is that process's.
ALTER TABLE runs ADD COLUMN secrets_given BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Down
SELECT 1;
