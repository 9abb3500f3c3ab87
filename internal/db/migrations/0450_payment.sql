-- +goose Up

-- Accounts that pay, or were about to: one row an account. Subscriptions are those of the
-- payment provider, as it last had them; what an account has of them is counted here.
CREATE TABLE payment_customers (
  account_id  TEXT PRIMARY KEY REFERENCES accounts (id),
  customer_id TEXT NOT NULL UNIQUE,          -- the provider's
  seats       BIGINT NOT NULL DEFAULT 0,     -- paid for, as last given to the account
  own_seats   BIGINT NOT NULL DEFAULT 0,     -- the account's besides, by the server or an operator
  gave_tier   BOOLEAN NOT NULL DEFAULT FALSE, -- its tier is the one that was paid for
  read_at     BIGINT,                        -- when the reading that is stored began; NULL: none is
  last_error  TEXT,                          -- of the last reading; NULL: none
  created_at  BIGINT NOT NULL
);

CREATE TABLE paid_subscriptions (
  id           TEXT NOT NULL,    -- the provider's
  kind         TEXT NOT NULL,    -- seats or oss_donor
  account_id   TEXT NOT NULL REFERENCES accounts (id),
  status       TEXT NOT NULL,    -- in the provider's words
  quantity     BIGINT NOT NULL,  -- as the provider has it
  seats        BIGINT NOT NULL,  -- in force, until lowers_at
  lowers_at    BIGINT,           -- from then on quantity is in force; NULL: it is
  paid_until   BIGINT,           -- end of the last period that was paid; NULL: none was
  failed_at    BIGINT,           -- since when the provider waits for a payment; NULL: it does not
  cancels_at   BIGINT,           -- when it ends by itself; NULL: it goes on
  created_at   BIGINT NOT NULL,
  PRIMARY KEY (id, kind)
);
CREATE INDEX paid_subscriptions_account ON paid_subscriptions (account_id, created_at, id);

-- Events of the provider, each once.
CREATE TABLE payment_events (
  id          TEXT PRIMARY KEY,
  account_id  TEXT,              -- NULL: of no customer that is known here
  kind        TEXT NOT NULL,
  received_at BIGINT NOT NULL
);
CREATE INDEX payment_events_received ON payment_events (received_at);
