-- +goose Up
-- The ledger of a gift is the giver's: it stays when the account whose work it was is deleted.
ALTER TABLE donation_uses DROP CONSTRAINT donation_uses_account_id_fkey;

-- Programs that know the schema up to here work with it.
INSERT INTO schema_releases (version, oldest, program) VALUES (706, 670, '');

-- +goose Down
SELECT 1;
