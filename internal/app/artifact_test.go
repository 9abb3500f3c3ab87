package app

import (
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
)

// An account without room for the bytes of an artifact is refused it, and one that deletes an
// artifact has its room again.
func TestArtifactRoom(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			y.send("PUT", "/v1/admin/accounts/"+y.acct+"/quota", y.operator(), `{"confirm": true, "object_bytes": 1000}`).want(200)
			put := func(size string) answer {
				return y.send("POST", "/v1/artifacts", y.owner, `{"name": "a", "content_type": "text/plain", "size": `+size+`}`)
			}
			var made struct{ ID string }
			decode(t, put("900").want(201), &made)
			if said := string(put("101").want(507).body); !strings.Contains(said, "/problems/quota-full") ||
				!strings.Contains(said, `"quota":"object_bytes"`) {
				t.Error(said)
			}
			y.send("DELETE", "/v1/artifacts/"+made.ID, y.owner, "").want(200)
			put("101").want(201)
		})
	}
}

// A server that keeps no objects says so, and has none.
func TestArtifactsWithoutObjects(t *testing.T) {
	t.Parallel()
	y := start(t, dbtest.Engines()[0], "--blob", "off")
	said := y.send("POST", "/v1/artifacts", y.owner, `{"name": "a", "content_type": "text/plain", "size": 1}`).want(503)
	if !strings.Contains(string(said.body), "/problems/no-object-store") {
		t.Errorf("%s", said.body)
	}
	y.send("GET", "/v1/artifacts", y.owner, "").want(200)
}
