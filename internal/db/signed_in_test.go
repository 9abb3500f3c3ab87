package db_test

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
)

var (
	aUser    = db.S(`INSERT INTO users (id, login, name, email, created_at) VALUES ($1, $1, $1, $1, 0)`)
	anOrg    = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ('acme', 'acme', 'organization', 'free', 0, 0)`)
	aSession = db.S(`INSERT INTO signins (hash, user_id, account_id, signed_in_at, last_seen_at, expires_at) VALUES ($1, $1, 'acme', $2, ` +
		`$2, $2)`)
	aRecord = db.S(`INSERT INTO audit (id, account_id, at, actor, kind, object, request_id, data, seq) VALUES ($1, 'acme', $3, ` +
		`'system', 'user.signed_in', $2, '', '{}', 0)`)
	anOffer = db.S(`INSERT INTO invitations (id, kind, email, token_hash, created_at, expires_at, revoked_at) VALUES ($1, 'platform', ` +
		`$2, $1, $3, 0, $4)`)
	aRequest = db.S(`INSERT INTO access_requests (id, email, name, org, created_at, invited_at, decided_by) VALUES ($1, $1, '', '', 0, ` +
		`7, 'user:ops')`)

	lastSeen = db.Q[*int64](`SELECT last_signed_in_at FROM users WHERE id = $1`)
	invitedP = db.Q[*int64](`SELECT invited_at FROM access_requests WHERE id = $1`)
)

// TestMigrationOfSignIns migrates a database that has been in use, with recorded
// sign-ins and with applications whose invitation was withdrawn.
func TestMigrationOfSignIns(t *testing.T) {
	again(t, "0034_last_signed_in.sql", func(text string) (string, bool) {
		_, rest, ok := strings.Cut(text, "ADD COLUMN last_signed_in_at BIGINT;") // the column exists already
		return rest, ok
	}, func(tx *db.Tx) error {
		if _, err := anOrg.Exec(tx); err != nil {
			return err
		}
		for _, user := range []string{"both", "out", "never"} {
			if _, err := aUser.Exec(tx, user); err != nil {
				return err
			}
		}
		for _, row := range []struct {
			db.Stmt
			args []any
		}{
			{aSession, []any{"both", 30}}, {aRecord, []any{"1", "both", 20}}, {aRecord, []any{"2", "out", 11}},
			{aRecord, []any{"3", "out", 10}},
			{aRequest, []any{"back"}}, {anOffer, []any{"a", "back", 1, 2}},
			{aRequest, []any{"stands"}}, {anOffer, []any{"b", "stands", 1, 2}}, {anOffer, []any{"c", "stands", 3, nil}},
		} {
			if _, err := row.Exec(tx, row.args...); err != nil {
				return err
			}
		}
		return nil
	}, func(tx *db.Tx) error {
		for user, want := range map[string]int64{"both": 30, "out": 11, "never": 0} {
			at, err := lastSeen.One(tx, user)
			if err != nil {
				return err
			}
			if (at == nil) != (want == 0) || at != nil && *at != want {
				t.Errorf("%s was last here at %v, want %d", user, at, want)
			}
		}
		for request, want := range map[string]bool{"back": false, "stands": true} {
			at, err := invitedP.One(tx, request)
			if err != nil {
				return err
			}
			if (at != nil) != want {
				t.Errorf("%s is invited: %v", request, at != nil)
			}
		}
		return nil
	})
}
