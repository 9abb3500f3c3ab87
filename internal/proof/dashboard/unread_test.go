//go:build !race

package dashboard_test

import "testing"

// What a page could not read is told as such, and not as none.
func TestUnreadIsNotNone(t *testing.T) {
	t.Parallel()
	_, b := begin(t)
	b.Before(`{ const real = fetch; window.fetch = async (...a) => /^\/v1\/(runners\/releases|billing\/keys)$/.test(new URL(a[0], location.href).pathname) ?
		new Response(JSON.stringify({type: "/problems/internal", status: 500, detail: "It cannot be read now."}), {status: 500}) : real(...a) }`)
	visit(b, "/ui/fleet", "The fleet")
	b.See("It cannot be read now.")
	b.Gone("This server offers boxes no program")
	visit(b, "/ui/settings/gifts", "Gifts to open source")
	b.Button("Give something")
	b.See("It cannot be read now.")
	b.Gone("You have no key that can be given")
}
