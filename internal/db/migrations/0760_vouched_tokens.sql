-- +goose Up

-- Whether it was minted, or allowed, in a session that the identity provider of the account has vouched for:
-- then it is no more than that session, and ends with the provider.
ALTER TABLE tokens ADD COLUMN vouched BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE oauth_codes ADD COLUMN vouched BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE oauth_devices ADD COLUMN vouched BOOLEAN NOT NULL DEFAULT FALSE;

-- What somebody has allowed and no program has fetched ends with their membership.
CREATE INDEX oauth_codes_user ON oauth_codes (user_id) WHERE token_id IS NULL;
CREATE INDEX oauth_devices_user ON oauth_devices (user_id) WHERE token_id IS NULL AND user_id IS NOT NULL;
CREATE INDEX email_routes_by ON email_routes (created_by) WHERE confirmed_at IS NULL AND deleted_at IS NULL;

-- What an account stores is counted by these.
CREATE INDEX enrollments_account ON enrollments (account_id);

-- Programs that know the schema up to here work with it.
INSERT INTO schema_releases (version, oldest, program) VALUES (760, 670, '');
