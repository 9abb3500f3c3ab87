package app

import (
	"fmt"
	"testing"

	"yardmaster/internal/db"
)

// TestEveryAddressIsChecked holds that every row that takes an address of a mailbox refuses
// one that is no name at a domain.
func TestEveryAddressIsChecked(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	as := y.caller()
	rows := 0
	for _, o := range Ops() {
		field := "email"
		if o.ID == "email_route.create" {
			field = "address"
		}
		if o.Input()[field] != "body" || o.Kinds()[field].String() != "string" {
			continue
		}
		rows++
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t}
			for _, address := range []string{
				`a@[127.0.0.1]`, `a@127.0.0.1`, `a@localhost`, `a@x.localhost`, `a@intranet`, `a\u202eb@example.com`,
				`a@example.com\u2028bcc:x`, `a@example.com\r\nbcc: x@example.com`, `A <a@example.com>`, `"a"@example.com`,
			} {
				body := fmt.Sprintf(`{%q: "%s"}`, field, address)
				if address[0] == '"' {
					body = fmt.Sprintf(`{%q: %q}`, field, address)
				}
				refused(t, y.send(o.Method, filled(o, nil), "", body, as(o)...).problem(400, "invalid"), field)
			}
		})
	}
	if rows < 6 {
		t.Errorf("%d rows take an address", rows)
	}
}
