-- +goose Up

-- The digests of the tokens of revoked boxes, without a word of whose they were. A box that sleeps while
-- its account is deleted asks when it wakes up, and is told that it is revoked; the row of the box is gone.
CREATE TABLE revoked_tokens (
	token_hash TEXT   PRIMARY KEY,
	expires_at BIGINT NOT NULL
);
INSERT INTO revoked_tokens (token_hash, expires_at)
	SELECT token_hash, token_expires_at FROM boxes WHERE state = 'revoked'
	UNION ALL SELECT last_hash, last_expires_at FROM boxes WHERE state = 'revoked' AND last_hash IS NOT NULL;
CREATE INDEX revoked_tokens_expires ON revoked_tokens (expires_at);

-- Programs that know the schema up to here work with it.
INSERT INTO schema_releases (version, oldest, program) VALUES (785, 670, '');
