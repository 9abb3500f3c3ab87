-- +goose Up
-- Limits of which people were told that four fifths are spent: once for each period, and once
-- more when the limit is another one. Amounts are micro-dollars.
CREATE TABLE budget_warnings (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  scope      TEXT NOT NULL, -- that of the limit; operator: what an operator of the server set for the account
  ref        TEXT NOT NULL,
  period     TEXT NOT NULL, -- YYYY-MM; '': for ever
  micros     BIGINT NOT NULL, -- the limit
  PRIMARY KEY (account_id, scope, ref, period)
);
