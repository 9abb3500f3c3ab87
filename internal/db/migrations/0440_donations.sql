-- +goose Up
-- What accounts give to open-source repositories of other accounts. A gift has one of a key, a box,
-- or a key and an amount.
CREATE TABLE donations (
  id            TEXT PRIMARY KEY,
  account_id    TEXT NOT NULL REFERENCES accounts (id), -- who gives
  kind          TEXT NOT NULL, -- money, compute or llm
  repo_id       TEXT REFERENCES repos (id), -- NULL: the pool
  key_id        TEXT, -- of account_id
  box_id        TEXT, -- of account_id
  provider      TEXT NOT NULL DEFAULT '', -- of the key
  micros        BIGINT, -- that may be spent; NULL: as much as the giver's limits leave
  models        TEXT, -- JSON list of names: the ceiling; NULL: any model of the provider
  model         TEXT, -- that the recipient picked
  given_by      TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  parked_at     BIGINT, -- NULL: it is active
  parked_why    TEXT
);
CREATE INDEX donations_account ON donations (account_id, created_at, id);
CREATE INDEX donations_repo ON donations (repo_id, created_at, id) WHERE repo_id IS NOT NULL;
CREATE INDEX donations_pool ON donations (kind, id) WHERE repo_id IS NULL AND parked_at IS NULL;
CREATE UNIQUE INDEX donations_key ON donations (key_id) WHERE parked_at IS NULL AND kind = 'llm';
CREATE UNIQUE INDEX donations_box ON donations (box_id) WHERE parked_at IS NULL AND kind = 'compute';
CREATE INDEX donations_paying ON donations (key_id) WHERE parked_at IS NULL AND kind = 'money';
CREATE INDEX repos_taking ON repos (account_id, id) WHERE donations_enabled = TRUE AND private = FALSE AND enabled = TRUE;
-- What was used of a gift, for whom. Amounts are micro-dollars.
CREATE TABLE donation_uses (
  donation_id TEXT NOT NULL REFERENCES donations (id),
  account_id  TEXT NOT NULL REFERENCES accounts (id), -- whose work it was
  repo_id     TEXT NOT NULL,
  calls       BIGINT NOT NULL,
  unpriced    BIGINT NOT NULL,
  micros      BIGINT NOT NULL,
  last_at     BIGINT NOT NULL,
  PRIMARY KEY (donation_id, account_id, repo_id)
);
CREATE INDEX donation_uses_account ON donation_uses (account_id, donation_id);
