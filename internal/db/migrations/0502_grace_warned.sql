-- +goose Up
-- When people were told that a subscription whose payment has failed ends soon; NULL: they were not.
ALTER TABLE paid_subscriptions ADD COLUMN warned_at BIGINT;
