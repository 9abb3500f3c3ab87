package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// leasedNow counts the deliveries that nodes have in memory. One that has failed waits, too,
// and is in another state.
var leasedNow = db.Q[int](`SELECT COUNT(*) FROM webhook_deliveries WHERE state = 'pending' AND due_at > $1`)

// All endpoints of an account hang while 10,000 events happen. A node has a bounded number of
// them in memory and of requests under way, the endpoint of another account is sent its own
// at once, and each event is delivered once the endpoints answer again.
func TestAllHang(t *testing.T) {
	t.Parallel()
	const events, theirs = 10_000, 100
	onBoth(t, func(y *yard) {
		y.hook("a", PullMerged)
		y.hook("b", IssueEscalated)
		_, err := y.nodes[0].create(y.as("rival"), createIn{Name: "r", URL: y.srv.URL + "/r", Events: []string{PullMerged}})
		if err != nil {
			y.t.Fatal(err)
		}
		var mu sync.Mutex
		got := map[string]map[string]bool{"a": {}, "b": {}, "r": {}}
		hung, mostHung := 0, 0
		released := make(chan struct{})
		release := sync.OnceFunc(func() { close(released) })
		defer release() // the server waits for its handlers when it closes
		count := func(of string) int {
			mu.Lock()
			defer mu.Unlock()
			return len(got[of])
		}
		y.mu.Lock()
		y.answer = func(_ http.ResponseWriter, r *http.Request) {
			name := strings.Trim(r.URL.Path, "/")
			if name != "r" {
				mu.Lock()
				hung++
				mostHung = max(mostHung, hung)
				mu.Unlock()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					hung--
				}()
				select {
				case <-released:
				case <-r.Context().Done():
					return // the sender has given up
				}
			}
			mu.Lock()
			defer mu.Unlock()
			got[name][eventOf(r)] = true
		}
		y.mu.Unlock()
		for _, of := range []struct {
			account string
			n       int
		}{{"acme", events}, {"rival", theirs}} {
			if err := y.nodes[0].DB.Write(y.as(of.account), func(tx *db.Tx) error {
				for i := range of.n {
					n := merged(fmt.Sprint(i))
					if n.At = y.now(); i%2 == 1 && of.account == "acme" {
						n.Type = IssueEscalated
					}
					if err := y.nodes[0].Send(tx, n); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				y.t.Fatal(err)
			}
		}
		ctx := policy.With(y.t.Context(), policy.Actor{Credential: policy.System})
		for _, n := range y.nodes {
			n.pass(ctx, ctx)
		}
		patience.Until(y.t, "the other account has its events", func() bool { return count("r") == theirs })
		leased := 0
		if err := y.nodes[0].DB.Read(y.as("acme"), func(tx *db.Tx) (err error) {
			leased, err = leasedNow.One(tx, tx.Micros())
			return err
		}); err != nil {
			y.t.Fatal(err)
		}
		if most := len(y.nodes) * 2 * batch; leased > most+theirs {
			y.t.Errorf("%d deliveries are in memory, and not %d at most", leased, most)
		}
		release()
		for range 20 { // what has timed out waits for its next try
			y.pass()
			if count("a")+count("b") == events {
				break
			}
			y.wait(time.Hour)
		}
		if a, b := count("a"), count("b"); a != events/2 || b != events/2 {
			y.t.Errorf("%d and %d of %d events were delivered", a, b, events/2)
		}
		// The server may see later than the sender that a request was given up.
		if most := 2 * len(y.nodes) * 2 * atOnce; mostHung > most || mostHung == 0 {
			y.t.Errorf("%d requests hung at once, of %d at most", mostHung, most)
		}
		for _, name := range []string{"a", "b"} {
			var h row
			if err := y.nodes[0].DB.Read(y.as("acme"), func(tx *db.Tx) (err error) {
				h, _, err = byName.Maybe(tx, tx.Account, name)
				return err
			}); err != nil || h.UnhealthyAt != nil {
				y.t.Errorf("%s: %+v, %v", name, h, err)
			}
		}
	})
}

// eventOf is the id of the event that a request brings.
func eventOf(r *http.Request) string {
	var e struct{ ID string }
	_ = json.NewDecoder(r.Body).Decode(&e)
	return e.ID
}
