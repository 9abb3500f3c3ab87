-- +goose Up
-- What somebody has set out ends with their right to it, and is found by who that is.
CREATE INDEX tokens_user ON tokens (user_id) WHERE revoked_at IS NULL;
CREATE INDEX invitations_by ON invitations (invited_by) WHERE accepted_at IS NULL AND revoked_at IS NULL;
CREATE INDEX account_closures_by ON account_closures (asked_by);

-- Programs that know the schema up to here work with it.
INSERT INTO schema_releases (version, oldest, program) VALUES (750, 670, '');
