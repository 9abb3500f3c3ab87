-- +goose Up
-- Each node knows by itself which revocations its own bus has carried out: that
-- one of them was done with a key said nothing of the others.
DROP INDEX revoked_keys_owed;
ALTER TABLE revoked_keys DROP COLUMN done_at;
CREATE INDEX revoked_keys_at ON revoked_keys (revoked_at);

-- +goose Down
DROP INDEX revoked_keys_at;
ALTER TABLE revoked_keys ADD COLUMN done_at BIGINT;
CREATE INDEX revoked_keys_owed ON revoked_keys (revoked_at) WHERE done_at IS NULL;
