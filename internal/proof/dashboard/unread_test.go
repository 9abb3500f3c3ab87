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

// A month that has a forecast shows it with its range; another one has none.
func TestForecastOfAMonth(t *testing.T) {
	t.Parallel()
	_, b := begin(t)
	b.Before(`{ const real = fetch; window.fetch = async (...a) => {
		const at = new URL(a[0], location.href), got = await real(...a);
		if (at.pathname !== "/v1/billing/usage") return got;
		const forecast = at.searchParams.get("month") ? null : {usd: "310.00", low_usd: "262.10", high_usd: "357.90", days: 28};
		return new Response(JSON.stringify({...await got.json(), forecast}), {status: 200}) } }`)
	visit(b, "/ui/usage", "Usage and budgets")
	b.See("by its end, likely $262.10 to $357.90")
	b.See("$310.00")
	both(b, "a month with a forecast")
	shoot(b, "usage-forecast")
	b.Go("/ui/usage?month=2026-01")
	b.See("spent in 2026-01")
	b.Gone("by its end, likely")
}
