-- +goose Up
-- A session's row goes with it; when its user was last here stays.
ALTER TABLE users ADD COLUMN last_signed_in_at BIGINT;
CREATE TABLE last_seen AS SELECT who, MAX(at) AS at FROM (
	SELECT user_id AS who, signed_in_at AS at FROM signins
	UNION ALL SELECT object AS who, at FROM audit WHERE kind = 'user.signed_in') AS seen GROUP BY who;
CREATE INDEX last_seen_who ON last_seen (who);
UPDATE users SET last_signed_in_at = (SELECT l.at FROM last_seen l WHERE l.who = users.id);
DROP TABLE last_seen;

-- An application whose invitation was withdrawn waits again. It said it was
-- invited, so that nobody could invite or decline it any more.
UPDATE access_requests SET invited_at = NULL, decided_by = NULL
WHERE declined_at IS NULL AND invited_at IS NOT NULL AND 'revoked' = (
	SELECT CASE WHEN i.revoked_at IS NULL THEN 'stands' ELSE 'revoked' END FROM invitations i
	WHERE i.kind = 'platform' AND i.email = access_requests.email ORDER BY i.created_at DESC, i.id DESC LIMIT 1);

-- +goose Down
ALTER TABLE users DROP COLUMN last_signed_in_at;
