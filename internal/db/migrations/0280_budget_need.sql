-- +goose Up
-- What the call that was refused costs at least: its work goes on when the limits leave that much.
ALTER TABLE budget_stops ADD COLUMN need BIGINT NOT NULL DEFAULT 0;
