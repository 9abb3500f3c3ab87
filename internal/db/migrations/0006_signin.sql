-- +goose Up
-- The code that was last mailed to an address. Addresses of nobody have rows as
-- well: who asks for a code learns nothing from how the server behaves.
CREATE TABLE signin_codes (
  email      TEXT PRIMARY KEY,
  code       TEXT NOT NULL,             -- keyed digest
  tries      BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,           -- 0: it was used
  sent       BIGINT NOT NULL,           -- codes since window_at
  window_at  BIGINT NOT NULL
);
CREATE INDEX signin_codes_window ON signin_codes (window_at);

-- What a person is called by those who vouch for them.
CREATE TABLE identities (
  issuer     TEXT NOT NULL,
  subject    TEXT NOT NULL,
  user_id    TEXT NOT NULL REFERENCES users (id),
  created_at BIGINT NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX identities_user ON identities (user_id);

-- A session that an account's own identity provider vouches for is good in
-- that account only.
ALTER TABLE signins ADD COLUMN sso_account_id TEXT;

CREATE TABLE org_sso (
  account_id TEXT PRIMARY KEY REFERENCES accounts (id),
  issuer     TEXT NOT NULL,
  client_id  TEXT NOT NULL,
  sealed     TEXT NOT NULL,
  domains    TEXT NOT NULL,
  role       TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- +goose Down
SELECT 1;
