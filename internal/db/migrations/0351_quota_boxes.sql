-- +goose Up
-- The most boxes that an account may have, as operators have set it; NULL: the tier's, -1: no limit.
ALTER TABLE account_quotas ADD COLUMN boxes BIGINT;
