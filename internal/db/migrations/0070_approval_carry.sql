-- +goose Up
-- The identity of the change of the present head, '' while it is not known, with the merge
-- base that it is counted from and the number of merge bases.
ALTER TABLE pulls ADD COLUMN change TEXT NOT NULL DEFAULT '';
ALTER TABLE pulls ADD COLUMN merge_base TEXT NOT NULL DEFAULT '';
ALTER TABLE pulls ADD COLUMN merge_bases BIGINT NOT NULL DEFAULT 0;
-- The decision that a new head may take over: 'look' until git was asked, then the id of
-- the action, or ''.
ALTER TABLE pulls ADD COLUMN carry TEXT NOT NULL DEFAULT '';
-- What was decided about, as far as it was known at the decision.
ALTER TABLE pull_actions ADD COLUMN base_ref TEXT NOT NULL DEFAULT '';
ALTER TABLE pull_actions ADD COLUMN merge_base TEXT NOT NULL DEFAULT '';
ALTER TABLE pull_actions ADD COLUMN merge_bases BIGINT NOT NULL DEFAULT 0;
ALTER TABLE pull_actions ADD COLUMN change TEXT NOT NULL DEFAULT '';
ALTER TABLE pull_actions ADD COLUMN patch_id TEXT NOT NULL DEFAULT '';
-- Why a stale action is stale, if a new head could take it over: 'head_moved'.
ALTER TABLE pull_actions ADD COLUMN stale_why TEXT NOT NULL DEFAULT '';
-- The head that was decided about, after the decision was carried to another head.
ALTER TABLE pull_actions ADD COLUMN carried_from TEXT;
