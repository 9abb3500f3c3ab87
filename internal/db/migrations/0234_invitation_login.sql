-- +goose Up
-- An invitation is for an address or for a login. user_id is who has the login; it is NULL
-- for a login that nobody has, so that both kinds of login lead to a row.
ALTER TABLE invitations ADD COLUMN login TEXT NOT NULL DEFAULT '';
ALTER TABLE invitations ADD COLUMN user_id TEXT;
DROP INDEX invitations_open;
CREATE UNIQUE INDEX invitations_open ON invitations (COALESCE(account_id, ''), email, login)
  WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE INDEX invitations_user ON invitations (user_id, created_at);
-- Whether accounts may make the user a member without asking.
ALTER TABLE users ADD COLUMN added_at_once BOOLEAN NOT NULL DEFAULT FALSE;
