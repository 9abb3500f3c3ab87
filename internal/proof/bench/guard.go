package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/mcp"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/flow"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// round is how long the requests of one side of a duel last.
const round = 1500 * time.Millisecond

// echoIn and echo are the input and the answer of a capability that does nothing.
type echoIn struct {
	Title    string            `json:"title" minLength:"1" maxLength:"200"`
	Text     string            `json:"text" minLength:"1" maxLength:"20000"`
	Priority *int64            `json:"priority,omitempty" minimum:"0" maximum:"100"`
	Labels   map[string]string `json:"labels,omitempty" maxItems:"50" maxLength:"200"`
	Files    []string          `json:"files,omitempty" maxItems:"200" maxLength:"500"`
}

type echo struct {
	Kind   string            `json:"kind"`
	Title  string            `json:"title"`
	Labels map[string]string `json:"labels"`
	Files  []string          `json:"files"`
}

func echoing(_ context.Context, in echoIn) (echo, error) {
	return echo{"echo", in.Title, in.Labels, in.Files}, nil
}

func bareEcho(w http.ResponseWriter, r *http.Request) {
	var in echoIn
	if err := json.UnmarshalRead(r.Body, &in, json.RejectUnknownMembers(true)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, _ := echoing(r.Context(), in)
	w.Header().Set("Content-Type", "application/json")
	if err := json.MarshalWrite(w, out); err != nil {
		return // the client has disconnected
	}
}

// guarded serves the capability that does nothing, over REST and as a tool, behind
// the program's own pipeline: limits, credentials from a database, scopes, checks,
// encoding.
func guarded(path string) (http.Handler, error) {
	d, err := db.Open(context.Background(), "sqlite:"+path, db.Options{})
	if err != nil {
		return nil, err
	}
	who := signin.New(signin.Needs{
		DB: d, Clock: time.Now, Ring: seal.New(), Mail: &mail.Outbox{}, Invitations: flow.Invitations{}, Providers: flow.Providers{},
	})
	begin := time.Now()
	// A clock that runs fast enough keeps every rate limit unreached.
	fast := func() time.Time { return begin.Add(1_000_000 * time.Since(begin)) }
	ops := []op.Op{op.New(op.Row{ID: "bench.echo", Method: http.MethodPost, Path: "/v1/echo", Group: "Bench",
		Rule: policy.Require(policy.WriteTasks), Summary: "Nothing but the way there and back"}, echoing)}
	return rest.Handler(rest.Config{Pipeline: &op.Pipeline{
		BaseURL: "http://bench", Limits: limit.New(fast), Authenticate: who.Authenticate,
		Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
	}}, append(ops, mcp.New("bench", ops).Ops()...)), nil
}

// echoArgs is the input of the i-th call.
func echoArgs(i int64) []byte {
	return fmt.Appendf(nil, `{"title":"Make widget %d turn the right way round","text":"Widget %d turns left when it is asked to turn right. Its test says how it should be.",`+
		`"priority":50,"labels":{"area":"widgets"},"files":["widgets/turn.go","widgets/turn_test.go"]}`, i, i)
}

func echoCall(i int64) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"bench.echo","arguments":%s}}`, i, echoArgs(i))
}

// behindGuard starts the server of guarded on the database of a server that was set
// up and stopped.
func (b *bench) behindGuard(ctx context.Context, name string) (p *process, token string, err error) {
	w, err := b.settle(ctx, name)
	if err != nil {
		return nil, "", err
	}
	w.stop()
	p, _, err = b.launch(ctx, b.self, "baseline", "--guard", w.database())
	return p, w.pat, err
}

func echoes(ctx context.Context, p *process, path, token string, body func(int64) []byte) func() (outcome, error) {
	var n atomic.Int64
	l := load{clients: 4, method: http.MethodPost, url: p.url + path, token: token, body: body, status: http.StatusOK}
	return func() (outcome, error) { return l.run(ctx, p, round, 0, &n) }
}

func guard(ctx context.Context, b *bench) error {
	p, token, err := b.behindGuard(ctx, "guard")
	if err != nil {
		return err
	}
	defer p.stop()
	ours, theirs, err := duel(rounds, echoes(ctx, p, "/v1/echo", token, echoArgs), echoes(ctx, p, "/bare", token, echoArgs))
	if err != nil {
		return err
	}
	with, without := costs(ours), costs(theirs)
	b.add(row{what: "processor time the guard adds to a request", value: us(with - without), baseline: us(without),
		ratio: ratio(with, without), target: "≤ 40 µs", met: with-without <= 40*time.Microsecond})
	b.add(row{what: "a request of 4 clients", value: rate(rates(ours)), baseline: rate(rates(theirs)),
		ratio: ratio(rates(ours), rates(theirs))})
	return nil
}

func tools(ctx context.Context, b *bench) error {
	p, token, err := b.behindGuard(ctx, "mcp")
	if err != nil {
		return err
	}
	defer p.stop()
	ours, theirs, err := duel(rounds, echoes(ctx, p, mcp.Path, token, echoCall), echoes(ctx, p, "/v1/echo", token, echoArgs))
	if err != nil {
		return err
	}
	r := ratio(costs(ours), costs(theirs))
	b.add(row{what: "tools/call, processor time of the server a call", value: us(costs(ours)), baseline: us(costs(theirs)),
		ratio: r, target: "≤ 1.50 of REST", met: r <= 1.5})
	b.add(row{what: "tools/call, 4 clients", value: rate(rates(ours)), baseline: rate(rates(theirs)),
		ratio: ratio(rates(ours), rates(theirs))})

	w, err := b.settle(ctx, "tools")
	if err != nil {
		return err
	}
	defer w.stop()
	ask := func(method string) (time.Duration, error) {
		body := []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
		l := load{method: http.MethodPost, url: w.url + mcp.Path, token: w.pat, body: func(int64) []byte { return body },
			status: http.StatusOK}
		begin := time.Now()
		err := l.one(ctx, http.DefaultClient, 0)
		return time.Since(begin), err
	}
	first, err := ask("tools/list")
	if err != nil {
		return err
	}
	var lists, pings []time.Duration
	for range 200 {
		list, err := ask("tools/list")
		if err != nil {
			return err
		}
		ping, err := ask("ping")
		if err != nil {
			return err
		}
		lists, pings = append(lists, list), append(pings, ping)
	}
	took := percentile(lists, 50)
	b.add(row{what: "tools/list with all tools, p50, against ping", value: ms(took), baseline: ms(percentile(pings, 50)),
		ratio: ratio(took, percentile(pings, 50)), target: "< 5.0 ms", met: took < 5*time.Millisecond})
	b.add(row{what: "the first tools/list of a process", value: ms(first)})
	return nil
}
