// Package hostile attacks a bus as a box that follows no rule. The attacker has a
// valid credential, and tries with it to command, overhear, rob, forge and slow
// down another box, the control plane and the system account. The package needs
// nothing but connections, so one node and a cluster are attacked alike. How fast they
// are does not matter: an attack is judged by what was answered and by what it counted.
package hostile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Field is the target of an attack. The control plane must answer EchoMethod with
// the body and the headers of the question, and SlowMethod in the same way once
// Release is called: no method could answer more carelessly.
type Field struct {
	X, V string // ids of the attacker and of its victim

	Attack func(...nats.Option) (*nats.Conn, error) // connects as the attacker
	Suffer func(...nats.Option) (*nats.Conn, error) // connects as the victim, as boxes do

	// Connections that may read everything in the account of the control plane, of
	// the victim and of the system.
	Control, VictimSide, System *nats.Conn

	ControlAccount, VictimAccount string // names of the accounts

	// Calm leaves the flood out: where the attacker and the victim have one way to a control plane that refuses
	// nothing, the victim's calls wait behind the attacker's. A true one refuses them, and puts the attacker out.
	Calm bool

	Release func() // answers the calls of SlowMethod that wait
}

// Methods that the control plane must serve during a game.
const (
	EchoMethod = "echo"
	SlowMethod = "slow"
)

// Attempt is one attack and its outcome.
type Attempt struct {
	Name      string
	Succeeded bool
}

// settle is how long the effect of an attempt is awaited, beyond the time that an answer
// of the control plane takes.
const settle = 15 * time.Millisecond

// game is a running attack.
type game struct {
	Field
	ctx                      context.Context
	x, victim                *nats.Conn
	control, victims, system *listener
	attempts                 []Attempt
}

// Play runs every attack, and answers the attempts. It fails if the field is
// unfit, for example because the victim's calls are not answered before ctx ends,
// which must have a deadline.
func Play(ctx context.Context, f Field) (_ []Attempt, err error) {
	g := &game{Field: f, ctx: ctx}
	quiet := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}) // refusals are the hoped-for outcome
	if g.x, err = f.Attack(quiet, nats.CustomInboxPrefix("_INBOX."+f.X)); err != nil {
		return nil, fmt.Errorf("hostile: connect the attacker: %w", err)
	}
	defer g.x.Close()
	if g.victim, err = f.Suffer(quiet, nats.CustomInboxPrefix("_INBOX."+f.V)); err != nil {
		return nil, fmt.Errorf("hostile: connect the victim: %w", err)
	}
	defer g.victim.Close()
	for _, l := range []struct {
		to *nats.Conn
		in **listener
	}{{f.Control, &g.control}, {f.VictimSide, &g.victims}, {f.System, &g.system}} {
		if *l.in, err = listen(l.to); err != nil {
			return nil, err
		}
		defer (*l.in).stop()
	}
	if err := g.works(); err != nil {
		return nil, fmt.Errorf("hostile: before the game: %w", err)
	}
	acts := []func() error{g.deputies, g.chains, g.thefts, g.guess, g.flood, g.crowd}
	if f.Calm {
		acts = []func() error{g.deputies, g.chains, g.thefts, g.guess, g.crowd}
	}
	for _, act := range acts {
		if err := act(); err != nil {
			return g.attempts, err
		}
	}
	if err := g.works(); err != nil {
		return g.attempts, fmt.Errorf("hostile: after the game: %w", err)
	}
	return g.attempts, nil
}

func (g *game) result(name string, succeeded bool) {
	g.attempts = append(g.attempts, Attempt{name, succeeded})
}

// works fails unless the control plane answers the victim's call correctly.
func (g *game) works() error {
	m, err := ask(g.ctx, g.victim, "rpc."+g.V+"."+EchoMethod, "for me")
	if err == nil && string(m.Data) != "for me" {
		err = fmt.Errorf("the victim is answered %q", m.Data)
	}
	return err
}

// patience is how long an answer is waited for before the call is said again, as boxes do: a route between two
// nodes that breaks takes what is on its way with it.
const patience = 5 * time.Second

// ask makes a call until it is answered, or ctx ends.
func ask(ctx context.Context, nc *nats.Conn, subject, body string) (m *nats.Msg, err error) {
	for {
		try, cancel := context.WithTimeout(ctx, patience)
		m, err = nc.RequestWithContext(try, subject, []byte(body))
		late := try.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !late {
			return m, err
		}
	}
}

// answered waits until the control plane has answered what the attacker asked before, and
// l has heard what came of it: an answer and the mark behind it take the same way.
func (g *game) answered(l *listener) error {
	if _, err := ask(g.ctx, g.x, "rpc."+g.X+"."+EchoMethod, "the last"); err != nil {
		return fmt.Errorf("hostile: the attacker's own call: %w", err)
	}
	return l.upToNow(g.ctx)
}

// deputies asks every service to send its answer to each subject that matters:
// NATS does not hold a reply subject against the asker's permissions.
func (g *game) deputies() error {
	x, me := g.x, "rpc."+g.X+"."
	forged := []string{`{"acc":"` + g.ControlAccount + `"}`}
	asked := []struct {
		name string
		do   func(reply string) error
	}{
		{"an answer", func(r string) error { return x.PublishRequest(me+EchoMethod, r, []byte("body")) }},
		{"an answer with headers of ours", func(r string) error {
			return x.PublishMsg(&nats.Msg{Subject: me + EchoMethod, Reply: r, Data: []byte("body"),
				Header: nats.Header{"Nats-Request-Info": forged, "Nats-Trace-Dest": {r}, "Nats-Msg-Id": {"1"}}})
		}},
		{"the answer of a true method", func(r string) error { return x.PublishRequest(me+"ping", r, nil) }},
		{"an answer that never comes", func(r string) error { return x.PublishRequest(me+"nobody", r, nil) }},
		{"direct get", func(r string) error { return x.PublishRequest("$JS.API.DIRECT.GET.EVT.evt."+g.X+".s1.1", r, nil) }},
		{"a pull", func(r string) error { return x.PublishRequest("$JS.API.CONSUMER.MSG.NEXT.CMD."+g.X, r, []byte("1")) }},
		{"JetStream's own answer", func(r string) error { return x.PublishRequest("$JS.API.INFO", r, nil) }},
		{"the system's answer", func(r string) error { return x.PublishRequest("$SYS.REQ.USER.INFO", r, nil) }},
		{"the system's answer about accounts", func(r string) error { return x.PublishRequest("$SYS.REQ.ACCOUNT.PING.CONNZ", r, nil) }},
		{"a trace", func(r string) error {
			return x.PublishMsg(&nats.Msg{
				Subject: me + EchoMethod,
				Header:  nats.Header{"Nats-Trace-Dest": {r}, "Accept-Encoding": {"none"}},
			})
		}},
		{"a trace in the form of others", func(r string) error {
			return x.PublishMsg(&nats.Msg{
				Subject: me + EchoMethod,
				Header: nats.Header{
					"traceparent":     {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
					"Nats-Trace-Dest": {r},
				},
			})
		}},
		{"nobody, directly", func(r string) error { return x.Publish(r, []byte("body")) }},
		{"nobody, directly, with a forged origin", func(r string) error {
			return x.PublishMsg(&nats.Msg{Subject: r, Data: []byte("body"), Header: nats.Header{"Nats-Request-Info": forged}})
		}},
		{"nobody, by the name that is exported to nowhere", func(r string) error { return x.PublishRequest("void.js.API.INFO", r, nil) }},
	}
	targets := []struct {
		subject string
		in      *listener
		as      string // the subject that the listener hears; empty: subject
	}{
		{"ctl." + g.V + ".prove", g.victims, ""},
		{"_INBOX." + g.V + ".a.b", g.victims, ""},
		{"rpc." + g.V + ".claim", g.control, ""},
		{"rpc." + g.V + ".append", g.control, ""},
		{"evt." + g.V + ".r.1", g.control, ""},
		{"cp.own", g.control, ""},
		{"_INBOX.cp.own", g.control, ""},
		{"ctl." + g.V + ".halt", g.control, ""},
		{"$KV.presence." + g.V, g.control, ""},
		{"$JS.API.STREAM.DELETE.EVT", g.control, ""},
		{"$JS.API.STREAM.CREATE.SPY", g.control, ""},
		{"$SYS.REQ.CLAIMS.DELETE", g.system, ""},
		{"$SYS.REQ.ACCOUNT." + g.VictimAccount + ".CLAIMS.UPDATE", g.system, ""},
		{"$SYS.REQ.SERVER.PING", g.system, ""},
		{"$SYS.REQ.USER.INFO", g.system, "$SYS.REQ.USER." + g.ControlAccount + ".INFO"}, // in the name of the control plane
	}
	for _, d := range asked {
		for _, t := range targets {
			t.in.clear()
			if err := d.do(t.subject); err != nil {
				return fmt.Errorf("hostile: %s to %s: %w", d.name, t.subject, err)
			}
			if err := g.answered(t.in); err != nil {
				return err
			}
			shows := t.as
			if shows == "" {
				shows = t.subject
			}
			g.result(d.name+" to "+t.subject, t.in.heard(shows))
		}
	}
	return nil
}

// chains makes an answer travel on into another import of the attacker's account.
func (g *game) chains() error {
	me := "rpc." + g.X + "."
	g.control.clear()
	g.system.clear()
	if err := g.x.PublishRequest(me+EchoMethod, me+"chained", []byte("x")); err != nil {
		return err
	}
	if err := g.x.PublishRequest(me+EchoMethod, "$SYS.REQ.USER.INFO", nil); err != nil {
		return err
	}
	for _, l := range []*listener{g.control, g.system} {
		if err := g.answered(l); err != nil {
			return err
		}
	}
	g.result("an answer that goes on as a call", g.control.heard(me+"chained"))
	g.result("an answer that goes on to the system in the name of the control plane",
		g.system.heard("$SYS.REQ.USER."+g.ControlAccount+".INFO"))
	return nil
}

// thefts subscribes to the subjects of others, and joins the queue group of the
// control plane to receive its calls.
func (g *game) thefts() error {
	var stolen counter
	taken := make(chan string, 1000) // what a call held that came to the queue group
	var subs []*nats.Subscription
	for _, s := range []string{
		"rpc.>", "rpc." + g.V + ".>", "evt.>", "_R_.>", "_INBOX.>", "_INBOX." + g.V + ".>",
		"ctl.>", "ctl." + g.V + ".>", "$JS.>", "$SYS.>", "$KV.>", ">",
	} {
		for _, queue := range []string{"", "cp"} {
			sub, err := g.x.QueueSubscribe(s, queue, func(m *nats.Msg) {
				if !strings.Contains(string(m.Data), "private") {
					return
				}
				stolen.add()
				if queue != "" && strings.HasPrefix(m.Subject, "rpc.") {
					taken <- string(m.Data)
				}
			})
			if err != nil {
				return err
			}
			subs = append(subs, sub)
		}
	}
	if err := g.x.FlushWithContext(g.ctx); err != nil {
		return err
	}
	lost := 0
	for i := range 20 {
		gone, err := g.lost(fmt.Sprint("private ", i), taken)
		if err != nil {
			return err
		}
		if gone {
			lost++
		}
		if err := g.Control.Publish("ctl."+g.V+".run", []byte("private")); err != nil {
			return err
		}
	}
	if err := g.Control.FlushWithContext(g.ctx); err != nil {
		return err
	}
	if err := g.x.FlushWithContext(g.ctx); err != nil {
		return err
	}
	g.result("hearing what others say", stolen.above(g.ctx, 0))
	g.result("taking calls from the control plane", lost > 0)
	for _, sub := range subs {
		_ = sub.Unsubscribe() // the server may have refused the subscription
	}
	return g.x.FlushWithContext(g.ctx) // later calls are not taken any more
}

// lost makes a call of the victim, and tells whether the attacker got it in the place of
// the control plane. A call that nobody gets is an error, once ctx ends.
func (g *game) lost(body string, taken <-chan string) (bool, error) {
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		m, err := ask(ctx, g.victim, "rpc."+g.V+"."+EchoMethod, body)
		if err == nil && string(m.Data) != body {
			err = fmt.Errorf("hostile: the victim is answered %q", m.Data)
		}
		answer <- err
	}()
	for {
		select {
		case err := <-answer:
			return false, err
		case what := <-taken:
			if what == body {
				return true, nil
			}
		}
	}
}

// guess answers a call of the victim on its true response subject, before the control
// plane does.
func (g *game) guess() error {
	g.control.clear()
	answer := make(chan *nats.Msg, 1)
	go func() {
		m, _ := g.victim.RequestWithContext(g.ctx, "rpc."+g.V+"."+SlowMethod, []byte("true"))
		answer <- m
	}()
	reply, ok := g.control.await(g.ctx, "rpc."+g.V+"."+SlowMethod, nil)
	if !ok {
		return fmt.Errorf("hostile: the victim's slow call was not seen")
	}
	if err := g.x.Publish(reply, []byte("FORGED")); err != nil {
		return err
	}
	if err := g.x.FlushWithContext(g.ctx); err != nil {
		return err
	}
	g.Release()
	m := <-answer
	g.result("answering another's call on its response subject, known", m == nil || string(m.Data) != "true")
	return nil
}

const (
	// floodCalls is how many calls of the attacker are sent between two of the victim's.
	floodCalls = 50
	// floodMost is how many may be sent while the victim waits for one answer.
	floodMost = 2000
)

// flood sends as many calls as it can, while the victim goes on with its work.
func (g *game) flood() error {
	ctx, stop := context.WithCancel(g.ctx)
	var sent atomic.Int64
	more := make(chan struct{}, 1) // floodCalls were sent
	var wg sync.WaitGroup
	wg.Go(func() {
		body := make([]byte, 200<<10)
		for i := 0; ctx.Err() == nil; i++ {
			_ = g.x.PublishRequest("rpc."+g.X+"."+EchoMethod, "_INBOX."+g.X+".flood", body)
			sent.Add(1)
			if i%floodCalls == 0 {
				_ = g.x.FlushWithContext(g.ctx)
				select {
				case more <- struct{}{}:
				default:
				}
			}
		}
	})
	worst, err := int64(0), error(nil)
	for i := 0; i < 20 && err == nil; i++ {
		select {
		case <-more: // the flood goes on
		case <-ctx.Done():
		}
		from := sent.Load()
		err = g.works()
		worst = max(worst, sent.Load()-from)
	}
	stop()
	wg.Wait()
	g.result(fmt.Sprintf("keeping others from being answered by a flood (%d calls were sent while one waited)", worst),
		err != nil || worst > floodMost)
	return g.x.FlushWithContext(g.ctx)
}

// crowd opens more connections and subscriptions than an account may have.
func (g *game) crowd() error {
	var open []*nats.Conn
	closed, at := make(chan struct{}, 20), map[string]int{g.x.ConnectedServerId(): 1}
	for range 20 {
		nc, err := g.Attack(nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
			nats.ClosedHandler(func(*nats.Conn) { closed <- struct{}{} }))
		if err != nil {
			break
		}
		open = append(open, nc)
		at[nc.ConnectedServerId()]++
	}
	delete(at, "") // closed already
	g.result("opening more than 4 connections at one server", len(at) == 0 || slices.Max(slices.Collect(maps.Values(at))) > 4)
	// Servers beside each other know of each other's connections a moment later, and close what is too many
	// then. The attacker's first connection is open already.
	held, late := len(open), time.After(patience)
	for waits := true; held > 3 && waits; {
		select {
		case <-closed:
			held--
		case <-late:
			waits = false
		}
	}
	g.result("keeping more than 4 connections open", held > 3)
	var subs []*nats.Subscription
	for i := range 200 {
		sub, err := g.x.SubscribeSync(fmt.Sprintf("_INBOX.%s.%d", g.X, i))
		if err == nil {
			subs = append(subs, sub)
		}
	}
	// What the server says comes before its answer to the flush.
	err := g.x.FlushWithContext(g.ctx)
	g.result("subscribing without end", err == nil && !errors.Is(g.x.LastError(), nats.ErrMaxSubscriptionsExceeded))
	for _, sub := range subs {
		_ = sub.Unsubscribe()
	}
	for _, nc := range open {
		nc.Close()
	}
	return nil
}
