-- +goose Up
-- How often the pages that no run has mended were gone through again, since a page became stale.
ALTER TABLE kb_keepers ADD COLUMN rounds BIGINT NOT NULL DEFAULT 0;
