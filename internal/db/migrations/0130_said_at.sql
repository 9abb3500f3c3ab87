-- +goose Up
-- When a review was given, as its host says; 0: it does not say. Deliveries come in any
-- order, and of the reviews of one person the latest counts.
ALTER TABLE host_reviews ADD COLUMN said_at BIGINT NOT NULL DEFAULT 0;

-- +goose Down
SELECT 1;
