package app

import (
	"errors"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// TestSecondOperator holds that whoever has the database of a server makes a second operator,
// beside the server, and that the last one stays.
func TestSecondOperator(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	bob := y.person("bob", y.acct, policy.Member)
	var ada string
	y.in(y.acct, func(tx *db.Tx) error {
		u, err := people.ReadUser(tx, y.user)
		ada = u.Login
		return err
	})
	is := func(want, letIn bool) {
		t.Helper()
		y.in(y.acct, func(tx *db.Tx) error {
			admin, approved, err := people.Standing(tx, bob)
			if admin != want || approved != letIn {
				t.Errorf("bob is an operator: %v, and let in: %v", admin, approved)
			}
			return err
		})
	}
	if _, err := Appoint(t.Context(), y.cfg, ada, false); !errors.Is(err, fault.Reason("last_platform_admin", "")) {
		t.Errorf("the last one: %v", err)
	}
	for i, changed := range []bool{true, false} {
		if done, err := Appoint(t.Context(), y.cfg, "BOB", true); err != nil || done != changed {
			t.Errorf("time %d: %v, %v", i, done, err)
		}
	}
	is(true, true)
	if done, err := Appoint(t.Context(), y.cfg, "bob", false); err != nil || !done {
		t.Errorf("again none: %v, %v", done, err)
	}
	is(false, true)
	suspend := func() { y.in(y.acct, func(tx *db.Tx) error { _, err := people.Suspend(tx, bob); return err }) }
	for _, admin := range []bool{true, false} { // who is suspended is let in by the first, not by the second
		suspend()
		if done, err := Appoint(t.Context(), y.cfg, "bob", admin); err != nil || !done {
			t.Errorf("suspended, to %v: %v, %v", admin, done, err)
		}
		is(admin, admin)
	}
	if done, err := Appoint(t.Context(), y.cfg, "bob", true); err != nil || !done {
		t.Errorf("let in again: %v, %v", done, err)
	}
	suspend()
	if done, err := Appoint(t.Context(), y.cfg, "bob", true); err != nil || !done {
		t.Errorf("a suspended operator: %v, %v", done, err)
	}
	is(true, true)
	if _, err := Appoint(t.Context(), y.cfg, "nobody", true); !fault.IsKind(err, fault.NotFound) {
		t.Errorf("nobody: %v", err)
	}
}
