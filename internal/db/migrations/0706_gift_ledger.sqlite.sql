-- +goose Up
-- The ledger of a gift is the giver's: it stays when the account whose work it was is deleted.
CREATE TABLE donation_uses_kept AS SELECT * FROM donation_uses;
DROP TABLE donation_uses;
CREATE TABLE donation_uses (
  donation_id TEXT NOT NULL REFERENCES donations (id),
  account_id  TEXT NOT NULL, -- whose work it was
  repo_id     TEXT NOT NULL,
  calls       BIGINT NOT NULL,
  unpriced    BIGINT NOT NULL,
  micros      BIGINT NOT NULL,
  last_at     BIGINT NOT NULL,
  PRIMARY KEY (donation_id, account_id, repo_id)
);
INSERT INTO donation_uses (donation_id, account_id, repo_id, calls, unpriced, micros, last_at)
  SELECT donation_id, account_id, repo_id, calls, unpriced, micros, last_at FROM donation_uses_kept;
DROP TABLE donation_uses_kept;
CREATE INDEX donation_uses_account ON donation_uses (account_id, donation_id);

-- Programs that know the schema up to here work with it.
INSERT INTO schema_releases (version, oldest, program) VALUES (706, 670, '');

-- +goose Down
SELECT 1;
