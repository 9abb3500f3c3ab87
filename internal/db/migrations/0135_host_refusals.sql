-- +goose Up
-- How many refusals of a code host in a row named no time: each makes the block that
-- ends at blocked_until longer.
ALTER TABLE host_paces ADD COLUMN refusals BIGINT NOT NULL DEFAULT 0;

-- +goose Down
SELECT 1;
