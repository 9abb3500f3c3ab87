-- +goose Up
-- Where the shared boxes are looked for. An earlier text of 0228 made it.
CREATE INDEX IF NOT EXISTS boxes_shared ON boxes (owner_target) WHERE owner_target = 'shared';
