-- The model that a person likes best in an account, and what it made of the runs that began
-- by it. NULL in a run: it went as its template says.

-- +goose Up
CREATE TABLE llm_prefs (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  provider   TEXT NOT NULL,
  model      TEXT NOT NULL, -- empty: the provider's own default
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (account_id, user_id)
);
CREATE INDEX llm_prefs_user ON llm_prefs (user_id);
ALTER TABLE runs ADD COLUMN pref_provider TEXT;
ALTER TABLE runs ADD COLUMN pref_model TEXT;
