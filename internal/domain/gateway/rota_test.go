package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/llm"
	"yardmaster/internal/proof/patience"
)

// vendor is a provider of chat completions whose answers a test decides, by the key of the
// call.
type vendor struct {
	*httptest.Server
	mu    sync.Mutex
	ways  map[string]http.HandlerFunc
	asked map[string]int
}

func newVendor(t *testing.T) *vendor {
	v := &vendor{ways: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		v.mu.Lock()
		v.asked[key]++
		way := v.ways[key]
		v.mu.Unlock()
		if way != nil {
			way(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"by %s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, key)
	}))
	t.Cleanup(v.Close)
	return v
}

// answers sets how calls over a key are answered; nil: well.
func (v *vendor) answers(key string, way http.HandlerFunc) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ways[key] = way
}

func (v *vendor) calls(key string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.asked[key]
}

// fails answers with a status, a body and headers.
func fails(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// key adds a key of the vendor; more are further members of the body.
func (f *fixture) key(v *vendor, name, more string) modelkey.BillingKey {
	f.t.Helper()
	return f.addKey(`{"provider":"compatible","base_url":"` + v.URL + `","model":"m","key":"` + name + `"` + more + `}`)
}

// rest is that of a key of the account, by its id.
func (f *fixture) rest(keyID string) *modelkey.KeyRest {
	f.t.Helper()
	var keys op.Page[modelkey.BillingKey]
	f.api(200, "GET", "/v1/billing/keys", "", &keys)
	for _, k := range keys.Data {
		if k.ID == keyID {
			return k.Rest
		}
	}
	f.t.Fatalf("there is no key %s", keyID)
	return nil
}

const (
	first  = "first-0123456789"
	second = "second-0123456789"
)

// TestA06OneCallTriesOutWhatHasRested: a call during a cool-down neither happens nor moves
// its end. At the end one call tries the key out, on all nodes; the others take another key,
// or wait for what comes of it.
func TestA06OneCallTriesOutWhatHasRested(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		v := newVendor(t)
		k := f.key(v, first, "")
		v.answers(first, fails(429, `{"error":{"message":"slow down"}}`, "Retry-After", "300"))
		f.want(chat, 429, llm.SlugRateLimit, "slow down")
		until := f.rest(k.ID).Until
		if want := f.clock().Add(5 * time.Minute); !until.Equal(want) {
			t.Fatalf("rests until %s, want %s", until, want)
		}
		f.later(2 * time.Minute)
		other := f.node()
		for _, node := range []*Service{f.Service, other} {
			if status, body, _ := node.ask("tok", chat); status != 429 || !strings.Contains(body, "before 2026-01-02T03:09:05Z") {
				t.Errorf("%d %s", status, body)
			}
		}
		if got := f.rest(k.ID).Until; !got.Equal(until) || v.calls(first) != 1 {
			t.Fatalf("rests until %s after %d calls", got, v.calls(first))
		}

		// At its end: one is held by the vendor, and nine wait for it, on two nodes.
		f.later(4 * time.Minute)
		came, go_ := make(chan bool, 20), make(chan bool)
		v.answers(first, func(w http.ResponseWriter, r *http.Request) {
			came <- true
			<-go_
			v.answers(first, nil)
			io.WriteString(w, `{"choices":[{"message":{"content":"tried"},"finish_reason":"stop"}]}`)
		})
		var tried atomic.Int64
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				status, body, _ := []*Service{f.Service, other}[i%2].ask("tok", chat)
				if status != 200 {
					t.Errorf("%d %s", status, body)
				}
				if strings.Contains(body, "tried") {
					tried.Add(1)
				}
			})
		}
		patience.Receive(t, "the call that tries the key out", came)
		if len(came) > 0 || v.calls(first) != 2 {
			t.Errorf("%d calls while the key is tried out", v.calls(first)-1)
		}
		close(go_)
		wg.Wait()
		if tried.Load() != 1 || v.calls(first) != 11 {
			t.Errorf("%d calls tried the key out, %d were made", tried.Load(), v.calls(first)-1)
		}
		other.Close()
		if rest := f.rest(k.ID); rest != nil {
			t.Errorf("the key still rests: %+v", rest)
		}
	})
}

// TestA06TheOthersTakeAnotherKey: with a second key nobody waits for the first.
func TestA06TheOthersTakeAnotherKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		v := newVendor(t)
		k := f.key(v, first, `,"priority":1`)
		f.key(v, second, "")
		v.answers(first, fails(503, `{"error":{"message":"down"}}`, "Retry-After", "20"))
		f.want(chat, 200, "", second)
		f.want(chat, 200, "", second)
		if rest := f.rest(k.ID); rest == nil || rest.Reason != modelkey.Overloaded || v.calls(first) != 1 {
			t.Errorf("%+v after %d calls", rest, v.calls(first))
		}
		f.later(time.Hour) // nothing is in the second one's cache any more
		came, go_ := make(chan bool, 20), make(chan bool)
		v.answers(first, func(w http.ResponseWriter, r *http.Request) {
			came <- true
			<-go_
			fails(503, `{}`)(w, r)
		})
		done := make(chan string, 1)
		go func() { _, body, _ := f.ask("tok", chat); done <- body }()
		patience.Receive(t, "the call that tries the key out", came)
		f.want(chat, 200, "", second)
		close(go_)
		if body := patience.Receive(t, "the answer of the other key", done); !strings.Contains(body, second) {
			t.Error(body)
		}
		if rest := f.rest(k.ID); !rest.Until.Equal(f.clock().Add(30 * time.Second)) {
			t.Errorf("after its second failure the key rests until %s", rest.Until)
		}
	})
}

// TestA09WhenToComeAgain walks the forms in which providers say that.
func TestA09WhenToComeAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, db.SQLite)
	date := func(d time.Duration) string { return f.clock().Add(d).Format(http.TimeFormat) }
	epoch := func(d time.Duration) string { return strconv.FormatInt(f.clock().Add(d).Unix(), 10) }
	for i, x := range []struct {
		name    string
		status  int
		body    string
		headers []string
		reason  string
		rests   time.Duration // 0: the key does not rest
	}{
		{"seconds", 429, `{}`, []string{"Retry-After", "7"}, modelkey.RateLimited, 7 * time.Second},
		{"a date", 429, `{}`, []string{"Date", date(0), "Retry-After", date(time.Minute)}, modelkey.RateLimited, time.Minute},
		{"milliseconds", 429, `{}`, []string{"Retry-After-Ms", "2500", "Retry-After", "3"}, modelkey.RateLimited, 2500 * time.Millisecond},
		{"over", 429, `{}`, []string{"Date", date(0), "Retry-After", date(-time.Hour)}, modelkey.RateLimited, time.Second},
		{"a duration", 429, `{}`, []string{"X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "6m0s"},
			modelkey.RateLimited, 6 * time.Minute},
		{"RFC 3339", 429, `{}`, []string{"Date", date(0), "Anthropic-Ratelimit-Requests-Remaining", "0",
			"Anthropic-Ratelimit-Requests-Reset", f.clock().Add(40 * time.Second).Format(time.RFC3339)},
			modelkey.RateLimited, 40 * time.Second},
		{"an epoch", 429, `{}`, []string{"Date", date(0), "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", epoch(time.Minute)},
			modelkey.RateLimited, time.Minute},
		{"an epoch in milliseconds", 429, `{}`, []string{"Date", date(0), "X-Ratelimit-Remaining", "0",
			"X-Ratelimit-Reset", epoch(time.Minute) + "000"},
			modelkey.RateLimited, time.Minute},
		{"a subscription", 429, `{}`, []string{"Date", date(0), "Anthropic-Ratelimit-Unified-Status", "rejected",
			"Anthropic-Ratelimit-Unified-Reset", epoch(5 * time.Hour)}, modelkey.Exhausted, 5 * time.Hour},
		{"in words", 429, `{"error":{"message":"Rate limit reached. Please try again in 2m13s."}}`, nil,
			modelkey.RateLimited, 133 * time.Second},
		{"other words", 429, `{"error":{"message":"Your limit will reset after 2m 13s."}}`, nil,
			modelkey.RateLimited, 133 * time.Second},
		{"a week", 429, `{"error":{"message":"weekly limit"}}`, []string{"Retry-After", "600000"},
			modelkey.Exhausted, 600000 * time.Second},
		{"a year", 429, `{}`, []string{"Retry-After", "31536000"}, modelkey.Exhausted, 32 * 24 * time.Hour},
		{"nothing", 429, `{}`, nil, modelkey.RateLimited, 15 * time.Second},
		{"no quota", 429, `{"error":{"code":"insufficient_quota","message":"pay"}}`, nil, modelkey.Exhausted, 30 * time.Minute},
		{"no money", 402, `{}`, nil, modelkey.Exhausted, 30 * time.Minute},
		{"revoked", 401, `{}`, nil, modelkey.Refused, 30 * time.Minute},
		{"forbidden", 403, `{}`, nil, modelkey.Refused, 30 * time.Minute},
		{"overloaded", 529, `{}`, []string{"Retry-After", "9"}, modelkey.Overloaded, 9 * time.Second},
		{"once failed", 500, `{}`, nil, "", 0},
		{"a bad call", 400, `{}`, []string{"Retry-After", "9"}, "", 0},
	} {
		v := newVendor(t)
		name := fmt.Sprintf("key-%d-0123456789", i)
		k := f.key(v, name, "")
		f.attempt.Provider, f.attempt.BaseURL = "compatible", v.URL
		f.later(2 * time.Second)                 // forget the grant
		for n := 1; n < len(x.headers); n += 2 { // what counts from now
			if h := x.headers[n-1]; h == "Date" {
				moved := f.clock()
				x.headers[n] = moved.Format(http.TimeFormat)
			}
		}
		v.answers(name, fails(x.status, x.body, x.headers...))
		before := f.clock()
		rest := f.askOnce(k.ID)
		if (rest == nil) != (x.rests == 0) {
			t.Errorf("%s: %+v", x.name, rest)
			continue
		}
		if rest == nil {
			continue
		}
		took := rest.Until.Sub(before)
		if absolute := len(x.headers) > 0 && x.headers[0] == "Date"; absolute && x.rests > time.Second {
			took += time.Duration(i+1) * 2 * time.Second // the times of the table count from its beginning
		}
		if string(rest.Reason) != x.reason || took != x.rests {
			t.Errorf("%s: %s for %s, want %s for %s", x.name, rest.Reason, took, x.reason, x.rests)
		}
	}
}

// askOnce makes a call, gives it up once its key rests, and returns that rest.
func (f *fixture) askOnce(keyID string) (rest *modelkey.KeyRest) {
	f.t.Helper()
	ctx, giveUp := context.WithCancel(f.t.Context())
	done := make(chan bool)
	go func() { f.askFor(ctx, "tok", chat); close(done) }()
	patience.Until(f.t, "the call has ended, or its key rests", func() bool {
		if rest = f.rest(keyID); rest != nil {
			return true
		}
		select {
		case <-done:
			rest = f.rest(keyID)
			return true
		default:
			return false
		}
	})
	giveUp()
	<-done
	return rest
}

// TestCircuit: a provider that fails several calls in a row rests, each time for longer; what
// works in between begins the count anew.
func TestCircuit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, db.SQLite)
	v := newVendor(t)
	k := f.key(v, first, "")
	down := fails(500, `{"error":{"message":"oops"}}`)
	for range 2 {
		v.answers(first, down)
		f.want(chat, 500, llm.SlugUnavailable, "oops")
		f.want(chat, 500, llm.SlugUnavailable, "oops")
		v.answers(first, nil)
		f.want(chat, 200, "", first)
		f.Close()
	}
	v.answers(first, down)
	f.want(chat, 500, llm.SlugUnavailable, "oops")
	f.want(chat, 500, llm.SlugUnavailable, "oops")
	done := make(chan int, 1)
	go func() { status, _, _ := f.ask("tok", chat); done <- status }()
	var rest *modelkey.KeyRest
	patience.Until(t, "the key rests", func() bool { rest = f.rest(k.ID); return rest != nil })
	if rest.Reason != modelkey.Broken || !rest.Until.Equal(f.clock().Add(15*time.Second)) {
		t.Errorf("%+v", rest)
	}
	v.answers(first, nil)
	f.later(15 * time.Second) // the third call has waited for the end of the rest
	if status := patience.Receive(t, "an answer", done); status != 200 {
		t.Error(status)
	}
	f.Close()
	if rest := f.rest(k.ID); rest != nil {
		t.Errorf("%+v", rest)
	}
}

// TestCapacityAndKind: a subscription goes before a metered key of the same priority, and
// what a key has no room for goes over the next.
func TestCapacityAndKind(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		v := newVendor(t)
		f.key(v, second, `,"kind":"metered"`)
		f.key(v, first, `,"kind":"subscription","capacity":1`)
		came, go_ := make(chan bool, 1), make(chan bool)
		v.answers(first, func(w http.ResponseWriter, r *http.Request) {
			came <- true
			<-go_
			v.answers(first, nil)
			io.WriteString(w, `{"choices":[{"message":{"content":"slow"},"finish_reason":"stop"}]}`)
		})
		done := make(chan string, 1)
		go func() { _, body, _ := f.ask("tok", chat); done <- body }()
		patience.Receive(t, "a call over the subscription", came)
		f.want(chat, 200, "", second)
		close(go_)
		if body := patience.Receive(t, "its answer", done); !strings.Contains(body, "slow") {
			t.Error(body)
		}
	})
}

// TestA10AConversationKeepsItsKey: a conversation stays with the key that has served it while
// its provider keeps what it has cached, and leaves it when that rests.
func TestA10AConversationKeepsItsKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		v := newVendor(t)
		f.key(v, first, `,"priority":1`)
		f.key(v, second, "")
		f.want(chat, 200, "", first)
		v.answers(first, fails(429, `{}`, "Retry-After", "10"))
		f.want(chat, 200, "", second)
		v.answers(first, nil)
		f.later(20 * time.Second)
		for range 5 {
			f.want(chat, 200, "", second) // the other is well again
			f.later(4 * time.Minute)
		}
		f.later(2 * time.Minute)
		f.want(chat, 200, "", first) // nothing is in the cache any more
		f.Service.writes.Wait()
		v.answers(first, fails(429, `{}`, "Retry-After", "10"))
		f.want(chat, 200, "", second)
	})
}

// TestA07ParkedUntilTheFirstServesAgain: when every key rests for longer than a call may wait,
// the run is parked until the first of them serves again, and later calls ask nobody.
func TestA07ParkedUntilTheFirstServesAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		v := newVendor(t)
		f.key(v, first, "")
		f.key(v, second, "")
		v.answers(first, fails(429, `{}`, "Retry-After", "3600"))
		v.answers(second, fails(429, `{}`, "Retry-After", "600"))
		want := f.clock().Add(10 * time.Minute)
		for range 2 {
			status, body, _ := f.ask("tok", chat)
			if got := patience.Receive(t, "a run to park", f.parked); status != 429 || !got.Equal(want) {
				t.Errorf("%d %s, parked until %s", status, body, got)
			}
		}
		if n := v.calls(first) + v.calls(second); n != 2 {
			t.Errorf("%d calls", n)
		}
		if status, body, _ := f.ask("tok", "/v1/chat/completions"); !strings.Contains(body, "03:14:05Z") {
			t.Errorf("%d %s does not say when", status, body)
		}
	})
}

// TestAShortRestIsWaitedFor: the agent does not notice that its only key rests for a while.
func TestAShortRestIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t, db.SQLite)
	v := newVendor(t)
	k := f.key(v, first, "")
	v.answers(first, fails(429, `{}`, "Retry-After", "20"))
	done := make(chan string, 1)
	go func() { _, body, _ := f.ask("tok", chat); done <- body }()
	patience.Until(t, "the key rests", func() bool { return f.rest(k.ID) != nil })
	v.answers(first, nil)
	f.later(20 * time.Second)
	if body := patience.Receive(t, "the answer", done); !strings.Contains(body, first) {
		t.Error(body)
	}
	if len(f.parked) > 0 {
		t.Error("the run was parked")
	}
}

// TestRotateAndVerifyEndARest: a key with another secret, or one that its provider takes, is
// used at once.
func TestRotateAndVerifyEndARest(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		v := newVendor(t)
		k := f.key(v, first, "")
		v.answers(first, fails(401, `{}`))
		f.want(chat, 403, llm.SlugAuth, "")
		f.api(200, "POST", "/v1/billing/keys/"+k.ID+"/rotate", `{"key":"`+second+`"}`, nil)
		f.later(2 * time.Second)
		f.want(chat, 200, "", second)
		v.answers(second, fails(402, `{}`))
		f.want(chat, 402, llm.SlugQuota, "")
		v.answers(second, nil)
		f.api(200, "POST", "/v1/billing/keys/"+k.ID+"/verify", ``, nil)
		f.later(2 * time.Second)
		f.want(chat, 200, "", second)
	})
}

// TestNodesShareCapacity: a key that takes one call at a time takes one of three nodes, and each
// node has its turn.
func TestNodesShareCapacity(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		v := newVendor(t)
		f.key(v, first, `,"capacity":1`)
		var now, most atomic.Int64
		v.answers(first, func(w http.ResponseWriter, r *http.Request) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			runtime.Gosched() // others come in, if they may
			now.Add(-1)
			io.WriteString(w, `{"choices":[{"message":{"content":"one"},"finish_reason":"stop"}]}`)
		})
		var calls sync.WaitGroup
		for i := range 3 {
			s := f.node()
			r := nodes.New(nodes.Config{DB: s.DB, Every: time.Hour, Logger: s.Logger, Self: nodes.Self{ID: strconv.Itoa(i)}})
			if err := r.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Places = r
			for range 4 {
				calls.Go(func() {
					if status, body, _ := s.ask("tok", chat); status != 200 {
						t.Errorf("%d %s", status, body)
					}
				})
			}
		}
		calls.Wait()
		if most.Load() != 1 {
			t.Errorf("%d calls at once", most.Load())
		}
	})
}
