package app

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
)

// Everybody and everything that acts in an account has a name there, for every credential of
// it, and none for a neighbour who knows the ids. The token of a box learns nothing.
func TestActorsOfNeighbours(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			ours := y.seed(y.acct, "acme")
			left := y.person("bob", y.acct, policy.Member)
			y.send("DELETE", "/v1/org/members/"+left, y.owner, "").want(http.StatusOK)
			rival := y.tenant("rival")
			spy := y.person("spy", rival, policy.Owner)
			machine := y.mint(y.acct, nil, policy.Scopes(policy.ReadRepos, policy.WriteAccount), nil)
			var source, minted struct{ ID, Token string }
			decode(t, y.send("POST", "/v1/integrations", y.owner, `{"name": "tracker", "kind": "sentry"}`).want(http.StatusCreated),
				&source)
			decode(t, y.send("POST", "/v1/tokens", machine, `{"name": "deploy"}`).want(http.StatusCreated), &minted)
			var own struct{ ID string }
			decode(t, y.send("POST", "/v1/tokens", y.owner, `{"name": "a person's"}`).want(http.StatusCreated), &own)

			all := url.Values{"actor": {
				"user:" + ours["userId"], "user:" + left, "user:" + spy, "box:" + ours["box"], "schedule:" + ours["schedule"],
				"source:" + source.ID, "pat:" + minted.ID, "pat:" + own.ID, "task:" + ours["task"],
			}}.Encode()
			names := func(bearer string) (out []string) {
				t.Helper()
				var page struct {
					Data []struct {
						Name string
						Gone bool
					}
				}
				decode(t, y.send("GET", "/v1/actors?"+all, bearer, "").want(http.StatusOK), &page)
				for _, n := range page.Data {
					if n.Gone {
						n.Name += " (left)"
					}
					out = append(out, n.Name)
				}
				slices.Sort(out)
				return out
			}
			want := []string{"Seeded", "bob (left)", "deploy", "of-acme", "seeded", "tracker"}
			for who, bearer := range map[string]string{"the owner": y.owner, "a machine": machine} {
				if got := names(bearer); !slices.Equal(got, want) {
					t.Errorf("%s is told %q, not %q", who, got, want)
				}
			}
			if got := names(y.mint(rival, &spy, policy.Owner.Ceiling(), nil)); !slices.Equal(got, []string{"spy"}) {
				t.Errorf("a neighbour is told %q", got)
			}
			y.send("GET", "/v1/actors?"+all, *y.station(y.owner).RunToken, "").want(http.StatusUnauthorized)
			many := "actor=" + strings.Join(slices.Repeat([]string{"user:" + left}, 101), "&actor=")
			y.send("GET", "/v1/actors?"+many, y.owner, "").want(http.StatusBadRequest)
		})
	}
}
