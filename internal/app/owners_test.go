package app

import (
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// What a person was given counts where they are an owner. Whoever changes owners
// wakes the queue of the account that gets it, and of the one that loses it.
func TestNewOwnersWakeTheQueue(t *testing.T) {
	t.Parallel()
	onBothEngines(t, func(t *testing.T, y *yard) {
		operator := y.operator()
		gus := y.person("gus", y.acct, policy.Member)
		y.send("POST", "/v1/admin/grants", operator, `{"user_id": "`+gus+`", "ai_devs": 3, "reason": "r"}`).want(201)
		second := y.tenant("second") // is owned later than acme, if both are
		capacity := func(account string) (n int64) {
			y.in(account, func(tx *db.Tx) (err error) {
				n, err = grant.Seats(tx, account)
				return err
			})
			return n
		}
		before := map[string]int64{y.acct: capacity(y.acct), second: capacity(second)}
		role := func(to string) func() answer {
			return func() answer { return y.send("PATCH", "/v1/org/members/"+gus, y.owner, `{"role": "`+to+`"}`) }
		}
		ordered := func(to string) func() answer {
			return func() answer {
				return y.send("PATCH", "/v1/admin/accounts/"+y.acct+"/members/"+gus, operator, `{"role": "`+to+`"}`)
			}
		}
		removed := func() answer { return y.send("DELETE", "/v1/org/members/"+gus, y.owner, "") }
		for _, c := range []struct {
			name  string
			do    func() answer
			wakes []string
			gets  string // has what gus was given from then on
		}{
			{"made an owner", role("owner"), []string{y.acct}, y.acct},
			{"none any more", role("member"), []string{y.acct}, ""},
			{"removed, who was none", removed, nil, ""},
			{"added as an owner", func() answer {
				y.in(y.acct, func(tx *db.Tx) error {
					_, err := people.SetAddedAtOnce(tx, gus, true)
					return err
				})
				return y.send("POST", "/v1/org/members", y.owner, `{"login": "gus", "role": "owner"}`)
			},
				[]string{y.acct}, y.acct},
			{"an owner elsewhere, too", func() answer {
				y.in(second, func(tx *db.Tx) error {
					later := tx.Micros() + time.Hour.Microseconds()
					return seed.Member{Account: second, User: gus, Role: string(policy.Owner), Since: later}.Add(tx)
				})
				return role("owner")()
			}, nil, y.acct},
			{"an owner there alone", role("admin"), []string{y.acct, second}, second},
			{"back again by an operator", ordered("owner"), []string{y.acct}, y.acct},
			{"and away", ordered("member"), []string{y.acct, second}, second},
			{"and back", ordered("owner"), []string{y.acct}, y.acct},
			{"removed", removed, []string{y.acct, second}, second},
			{"invited as an owner", func() answer {
				y.send("POST", "/v1/org/members", y.owner, `{"email": "gus@example.com", "role": "owner"}`).want(201)
				mine := y.mint(second, &gus, policy.Scopes(policy.ReadAccount), nil)
				return y.send("POST", "/v1/invitations/accept", mine, `{"token": "`+y.invited("gus@example.com")+`"}`)
			}, []string{y.acct}, y.acct},
		} {
			topics := map[string]<-chan struct{}{}
			for _, account := range c.wakes {
				topics[account] = y.hub.Watch(event.QueueTopic(account))
			}
			if a := c.do(); a.StatusCode >= 300 {
				t.Fatalf("%s: %d %s", c.name, a.StatusCode, a.body)
			}
			for account, was := range before {
				want := was
				if account == c.gets {
					want += 3
				}
				if got := capacity(account); got != want {
					t.Errorf("%s: the capacity of %s is %d, want %d", c.name, account, got, want)
				}
			}
			for account, news := range topics {
				select {
				case <-news:
				default:
					t.Errorf("%s does not wake the queue of %s", c.name, map[string]string{y.acct: "acme", second: "the other"}[account])
				}
			}
		}
	})
}
