-- +goose Up
-- What a person has allowed a program, until the program has fetched its token.

CREATE TABLE oauth_codes (
  hash       TEXT PRIMARY KEY,
  ticket     TEXT NOT NULL UNIQUE, -- the consent it came from: one code each
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  client     TEXT NOT NULL,        -- hash of the client_id
  name       TEXT NOT NULL,
  redirect   TEXT NOT NULL,
  challenge  TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  token_id   TEXT                  -- what the code was exchanged for
);
CREATE INDEX oauth_codes_expiry ON oauth_codes (expires_at);

CREATE TABLE oauth_devices (
  hash       TEXT PRIMARY KEY,     -- of the device code
  user_code  TEXT NOT NULL UNIQUE,
  name       TEXT NOT NULL,
  asked      TEXT NOT NULL,        -- scopes; [] is all that the approver may give
  expires_at BIGINT NOT NULL,
  polled_at  BIGINT,
  decision   TEXT NOT NULL,        -- pending, approved, denied
  account_id TEXT REFERENCES accounts (id),
  user_id    TEXT REFERENCES users (id),
  scopes     TEXT,                 -- approved
  token_id   TEXT
);
CREATE INDEX oauth_devices_expiry ON oauth_devices (expires_at);
