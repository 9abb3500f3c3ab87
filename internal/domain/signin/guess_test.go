package signin

import (
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

var (
	mailsTo  = db.Q[string](`SELECT subject FROM mails WHERE recipient = $1`)
	recorded = db.Q[string](`SELECT kind FROM audit WHERE account_id = $1`)
	armed    = db.SWith[armedArgs](`INSERT INTO signin_codes (email, code, tries, expires_at, sent, window_at)
		VALUES (:email, :code, 0, :expires_at, 1, :window_at)
		ON CONFLICT (email) DO UPDATE SET code = excluded.code, tries = 0, expires_at = excluded.expires_at`)
)

// armedArgs are the parameters of armed.
type armedArgs struct {
	Email, Code         string
	ExpiresAt, WindowAt int64
}

// reply is the answer to a try to sign in.
type reply struct {
	status int
	after  int // Retry-After
	body   string
}

var varies = regexp.MustCompile(`"request_id":"[^"]*"`)

// post sends a form from an address.
func (d *server) post(ip, path, form string) reply {
	req := httptest.NewRequest("POST", path, strings.NewReader(form))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.RemoteAddr = ip + ":1"
	if strings.Contains(ip, ":") {
		req.RemoteAddr = "[" + ip + "]:1"
	}
	w := httptest.NewRecorder()
	rest.Handler(rest.Config{}, d.Ops()).ServeHTTP(w, req)
	after, _ := strconv.Atoi(w.Header().Get("Retry-After"))
	return reply{w.Code, after, varies.ReplaceAllString(w.Body.String(), "")}
}

func (d *server) tryAs(ip, login, pw string) reply {
	return d.post(ip, "/auth/password", "login="+login+"&password="+pw)
}

const rightPassword = "a+long+password"

func address(i int) string { return "198.51.100." + strconv.Itoa(i) }

// TestOneLoginIsSlowedDown holds that tries at one login are slowed down, however
// many addresses they come from, that the wait grows and has a bound, and that an
// unknown login is treated alike.
func TestOneLoginIsSlowedDown(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		var waits []int
		for i := range 16 {
			known, unknown := d.tryAs(address(i), "ada", "wrong"), d.tryAs(address(i), "nobody", "wrong")
			if known != unknown || known.status != 401 {
				t.Fatalf("try %d: %+v and, for nobody, %+v", i, known, unknown)
			}
			if i < freeTries-1 {
				continue
			}
			early, alike := d.tryAs(address(100+i), "ada", rightPassword), d.tryAs(address(100+i), "nobody", rightPassword)
			if early != alike || early.status != 429 || early.after == 0 {
				t.Fatalf("after %d wrong tries: %+v and, for nobody, %+v", i+1, early, alike)
			}
			waits = append(waits, early.after)
			d.pass(time.Duration(early.after) * time.Second)
		}
		if want := []int{1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60}; !slices.Equal(waits, want) {
			t.Errorf("the waits are %v, want %v", waits, want)
		}
		if got := d.tryAs(address(200), "ada", rightPassword); got.status != 200 {
			t.Errorf("the right password, after the wait: %+v", got)
		}
		if got := d.tryAs(address(201), "ada", "wrong"); got.status != 401 {
			t.Errorf("wrong again, after a right one: %+v", got)
		}
	})
}

// TestOwnAddressIsNotHeldUp holds that guesses from elsewhere do not delay users at
// addresses where they are known, and that wrong tries from those addresses are
// counted.
func TestOwnAddressIsNotHeldUp(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		const home, sameHome, elsewhere = "2001:db8::1", "2001:db8::ffff:2", "2001:db8:1::1"
		if got := d.tryAs(home, "ada", rightPassword); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		for i := range 40 {
			d.tryAs(address(i), "ada", "wrong")
			d.pass(time.Second)
		}
		d.tryAs(address(41), "ada", "wrong")
		if got := d.tryAs(elsewhere, "ada", rightPassword); got.status != 429 {
			t.Errorf("from anywhere: %+v", got)
		}
		if got := d.tryAs(sameHome, "ada", rightPassword); got.status != 200 {
			t.Errorf("from home: %+v", got)
		}
		for range freeTries {
			d.tryAs(home, "ada", "wrong")
		}
		if got := d.tryAs(home, "ada", rightPassword); got.status != 429 {
			t.Errorf("after wrong tries at home: %+v", got)
		}
		d.pass(forgetAfter)
		if got := d.tryAs(home, "ada", "wrong"); got.status != 401 {
			t.Errorf("an hour later: %+v", got)
		}
		d.pass(homeLife + time.Hour)
		d.tryAs(elsewhere, "ada", "wrong")
		d.write(func(tx *db.Tx) error {
			_, own, err := isHome.Maybe(tx, d.hashName(guessPassword, "ada", network(home)), db.Micros(tx.Now.Add(-homeLife)))
			if own {
				t.Error("an address is the person's for ever")
			}
			return err
		})
	})
}

// TestPersonIsToldOfGuesses holds that the user gets a mail about guesses at most
// once a day, and that an unknown login gets none.
func TestPersonIsToldOfGuesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		count := func(want int) {
			t.Helper()
			d.write(func(tx *db.Tx) error {
				got, err := mailsTo.All(tx, "ada@example.com")
				if len(got) != want {
					t.Errorf("%d mails, want %d: %q", len(got), want, got)
				}
				kinds, failed := recorded.All(tx, "acme")
				if n := len(slices.DeleteFunc(kinds, func(k string) bool { return k != "user.sign_in_guessed" })); n != want {
					t.Errorf("%d audit rows, want %d", n, want)
				}
				if err == nil {
					err = failed
				}
				return err
			})
		}
		for i := range warnAt - 1 {
			d.tryAs(address(i), "ada", "wrong")
			d.pass(maxWait)
		}
		count(0)
		for i := range 20 {
			d.tryAs(address(i), "ada", "wrong")
			d.tryAs(address(i), "nobody", "wrong")
			d.pass(maxWait)
		}
		count(1)
		d.pass(warnEvery)
		for i := range warnAt + 1 {
			d.tryAs(address(i), "ada", "wrong")
			d.pass(maxWait)
		}
		count(2)
		d.write(func(tx *db.Tx) error {
			got, err := mailsTo.All(tx, "nobody")
			if len(got) > 0 {
				t.Errorf("mails to nobody: %q", got)
			}
			return err
		})
	})
}

// TestCodesAreSlowedDown holds that codes are slowed down like passwords, over any
// number of nodes.
func TestCodesAreSlowedDown(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			dsn := dbtest.DSN(t, e)
			nodes := [2]*server{newServer(t, dsn, true), newServer(t, dsn, false)}
			verify := func(i int, email, code string) reply {
				return nodes[i%2].post(address(i), "/auth/email/verify", "email="+email+"&code="+code)
			}
			arm := func() {
				d := nodes[0]
				d.write(func(tx *db.Tx) error {
					_, err := armed.Exec(tx, armedArgs{
						Email: "ada@example.com", Code: d.digest("ada@example.com", "123456"),
						ExpiresAt: db.Micros(tx.Now.Add(codeLife)), WindowAt: tx.Micros(),
					})
					return err
				})
			}
			for i := range freeTries {
				arm() // a fresh code each time
				known, unknown := verify(i, "ada@example.com", "000000"), verify(i, "nobody@example.com", "000000")
				if known != unknown || known.status != 401 {
					t.Fatalf("%+v and, for nobody, %+v", known, unknown)
				}
			}
			arm()
			early, alike := verify(8, "ada@example.com", "123456"), verify(9, "nobody@example.com", "123456")
			if early != alike || early.status != 429 {
				t.Errorf("at once: %+v and, for nobody, %+v", early, alike)
			}
			for _, d := range nodes {
				d.pass(time.Second)
			}
			if got := verify(9, "ada@example.com", "123456"); got.status != 200 {
				t.Errorf("the right code, a second later: %+v", got)
			}
		})
	}
}

// TestTriesAtOnceAreCounted holds that simultaneous tries all count.
func TestTriesAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		var mu sync.Mutex
		var group sync.WaitGroup
		seen := map[int]int{}
		for i := range 20 {
			group.Go(func() {
				r := d.tryAs(address(i), "ada", "wrong")
				mu.Lock()
				defer mu.Unlock()
				seen[r.status]++
			})
		}
		group.Wait()
		if seen[401] != freeTries || seen[429] != 20-freeTries {
			t.Errorf("%v, want %d that were made", seen, freeTries)
		}
	})
}

// TestTriesThatWereNotMade holds that a try does not count if its password was not
// checked because the queue was full.
func TestTriesThatWereNotMade(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		d.checks.once.Do(func() {
			d.checks.running, d.checks.turns = make(chan struct{}, 1), make(chan struct{}, 1)
			d.checks.strangers, d.checks.own = make(chan struct{}, 1), make(chan struct{}, 1)
		})
		d.checks.strangers <- struct{}{}
		for i := range 2 * warnAt {
			r := d.tryAs(address(i), "ada", rightPassword)
			if r.status != 429 || !strings.Contains(r.body, "people are signing in") {
				t.Fatalf("try %d: %+v", i, r)
			}
		}
		<-d.checks.strangers
		if r := d.tryAs(address(99), "ada", rightPassword); r.status != 200 {
			t.Errorf("%+v", r)
		}
	})
}

func TestWaitIsSaidInWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                       "in a second.",
		1400 * time.Millisecond: "in a second.",
		2 * time.Second:         "in 2 seconds.",
		time.Minute:             "in 60 seconds.",
	} {
		if err := slowDown(d); !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want … %s", d, err, want)
		}
	}
}
