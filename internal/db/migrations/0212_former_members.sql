-- +goose Up
-- Who was a member of an account and is none: rows of the account still name them.
CREATE TABLE former_members (
  account_id TEXT NOT NULL REFERENCES accounts (id),
  user_id    TEXT NOT NULL REFERENCES users (id),
  PRIMARY KEY (account_id, user_id)
);
-- Those who left before are on record.
INSERT INTO former_members (account_id, user_id)
  SELECT DISTINCT a.account_id, a.object FROM audit a
  JOIN users u ON u.id = a.object JOIN accounts c ON c.id = a.account_id
  WHERE a.kind IN ('org_member.removed', 'org_member.left')
  AND NOT EXISTS (SELECT 1 FROM memberships m WHERE m.account_id = a.account_id AND m.user_id = a.object);
