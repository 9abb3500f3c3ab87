package operator

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// Appoint makes the person with a login an operator, or no longer one. A new operator is let
// through the gate, a suspended one again. It is for a program beside the database: no
// capability does it. Servers read who is an operator anew within a second. changed is false
// if the person was that before. It returns fault.NotFound if nobody has the login, and the fault
// last_platform_admin for the only operator who can act.
func Appoint(tx *db.Tx, login string, operator bool) (changed bool, err error) {
	admins, err := people.LockOperators(tx)
	if err != nil {
		return false, err
	}
	u, ok, err := people.UserByLogin(tx, login)
	switch {
	case err != nil:
		return false, err
	case !ok:
		return false, fault.Missing("user")
	case !operator && len(admins) == 1 && admins[0] == u.ID:
		return false, fault.Reason("last_platform_admin", "This is the only operator of the server who can act: make another one first.")
	}
	set := people.Dismiss
	if operator {
		set = people.Appoint
	}
	if changed, err = set(tx, u.ID); err != nil || !changed {
		return false, err
	}
	return true, appointedEvent.Operated(tx, event.Subject{ID: u.ID}, appointedData{Operator: operator}, nil)
}
