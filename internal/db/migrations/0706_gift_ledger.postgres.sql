-- +goose Up
-- The ledger of a gift is the giver's: it stays when the account whose work it was is deleted.
ALTER TABLE donation_uses DROP CONSTRAINT donation_uses_account_id_fkey;

-- +goose Down
SELECT 1;
