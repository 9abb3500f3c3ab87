-- +goose Up
-- Wrong tries to sign in, by a digest of what was typed as the name. A row with
-- good_at is of one address from which the right password came.
CREATE TABLE signin_guesses (
  who      TEXT PRIMARY KEY,
  failures BIGINT NOT NULL,
  next_at  BIGINT NOT NULL,
  last_at  BIGINT NOT NULL,
  told_at  BIGINT NOT NULL DEFAULT 0,
  good_at  BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX signin_guesses_last ON signin_guesses (last_at);

-- +goose Down
DROP TABLE signin_guesses;
