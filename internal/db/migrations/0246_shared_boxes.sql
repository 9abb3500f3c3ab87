-- +goose Up
-- Where the shared boxes are looked for.
CREATE INDEX boxes_shared ON boxes (owner_target) WHERE owner_target = 'shared';
