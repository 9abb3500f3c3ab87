-- +goose Up
-- Why the checks of the head wait for a person; '': they wait for none.
ALTER TABLE pulls ADD COLUMN checks_hold TEXT NOT NULL DEFAULT '';
-- What has failed, or waits, of the checks of the head, for people.
ALTER TABLE pulls ADD COLUMN checks_why TEXT NOT NULL DEFAULT '';
-- Why a person had agents repair it again, in their words.
ALTER TABLE pulls ADD COLUMN armed_why TEXT NOT NULL DEFAULT '';
-- What the task of the pull request was told last.
ALTER TABLE pulls ADD COLUMN told TEXT NOT NULL DEFAULT '';
-- When the next step is to be decided anew although nothing may have changed; 0: not by the clock.
ALTER TABLE pulls ADD COLUMN move_at BIGINT NOT NULL DEFAULT 0;
-- Whether the code host was told to carry an order out, and has not answered.
ALTER TABLE pull_actions ADD COLUMN called BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE pulls SET checks_hold = needs WHERE state = 'open' AND needs IN ('base_broken', 'check_missing', 'action_required', 'check_infra');
UPDATE pull_actions SET called = TRUE WHERE state = 'approved' AND kind = 'merge' AND tries > 0;
UPDATE pulls SET move_at = 1 WHERE state = 'open';
CREATE INDEX pulls_to_move ON pulls (move_at) WHERE move_at > 0;
