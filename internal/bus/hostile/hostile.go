// Package hostile attacks a bus as a box that follows no rule. The attacker has a
// valid credential, and tries with it to command, overhear, rob, forge and slow
// down another box, the control plane and the system account. The package needs
// nothing but connections, so one node and a cluster are attacked alike.
package hostile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Field is the target of an attack. The control plane must answer EchoMethod with
// the body and the headers of the question, and SlowMethod after SlowTime in the
// same way: no method could answer more carelessly.
type Field struct {
	X, V string // ids of the attacker and of its victim

	Attack func(...nats.Option) (*nats.Conn, error) // connects as the attacker
	Suffer func(...nats.Option) (*nats.Conn, error) // connects as the victim, as boxes do

	// Connections that may read everything in the account of the control plane, of
	// the victim and of the system.
	Control, VictimSide, System *nats.Conn

	ControlAccount, VictimAccount string // names of the accounts
}

// Methods that the control plane must serve during a game.
const (
	EchoMethod = "echo"
	SlowMethod = "slow" // takes SlowTime
	SlowTime   = 300 * time.Millisecond
)

// Attempt is one attack and its outcome.
type Attempt struct {
	Name      string
	Succeeded bool
}

// settle is how long the effect of an attempt is awaited.
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
// unfit, for example because the victim's calls are not answered at all.
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
	for _, act := range []func() error{g.deputies, g.chains, g.thefts, g.guess, g.flood, g.crowd} {
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
	m, err := g.victim.Request("rpc."+g.V+"."+EchoMethod, []byte("for me"), 5*time.Second)
	if err == nil && string(m.Data) != "for me" {
		err = fmt.Errorf("the victim is answered %q", m.Data)
	}
	return err
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
			if err := x.FlushTimeout(5 * time.Second); err != nil {
				return fmt.Errorf("hostile: %w", err)
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
	if err := g.x.FlushTimeout(5 * time.Second); err != nil {
		return err
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
	var subs []*nats.Subscription
	for _, s := range []string{
		"rpc.>", "rpc." + g.V + ".>", "evt.>", "_R_.>", "_INBOX.>", "_INBOX." + g.V + ".>",
		"ctl.>", "ctl." + g.V + ".>", "$JS.>", "$SYS.>", "$KV.>", ">",
	} {
		for _, queue := range []string{"", "cp"} {
			sub, err := g.x.QueueSubscribe(s, queue, func(m *nats.Msg) {
				if strings.Contains(string(m.Data), "private") {
					stolen.add()
				}
			})
			if err != nil {
				return err
			}
			subs = append(subs, sub)
		}
	}
	if err := g.x.FlushTimeout(5 * time.Second); err != nil {
		return err
	}
	lost := 0
	for range 20 {
		m, err := g.victim.Request("rpc."+g.V+"."+EchoMethod, []byte("private"), 200*time.Millisecond)
		if err != nil || string(m.Data) != "private" {
			lost++
		}
		if err := g.Control.Publish("ctl."+g.V+".run", []byte("private")); err != nil {
			return err
		}
	}
	if err := g.Control.FlushTimeout(5 * time.Second); err != nil {
		return err
	}
	g.result("hearing what others say", stolen.above(g.ctx, 0))
	g.result("taking calls from the control plane", lost > 0)
	for _, sub := range subs {
		_ = sub.Unsubscribe() // the server may have refused the subscription
	}
	return nil
}

// guess answers a call of the victim on its true response subject.
func (g *game) guess() error {
	g.control.clear()
	answer := make(chan *nats.Msg, 1)
	go func() {
		m, _ := g.victim.Request("rpc."+g.V+"."+SlowMethod, []byte("true"), 5*time.Second)
		answer <- m
	}()
	reply := g.control.replyOf(g.ctx, "rpc."+g.V+"."+SlowMethod)
	if reply == "" {
		return fmt.Errorf("hostile: the victim's slow call was not seen")
	}
	if err := g.x.Publish(reply, []byte("FORGED")); err != nil {
		return err
	}
	if err := g.x.FlushTimeout(5 * time.Second); err != nil {
		return err
	}
	m := <-answer
	g.result("answering another's call on its response subject, known", m == nil || string(m.Data) != "true")
	return nil
}

// floodTime is how long a flood lasts.
const floodTime = 2 * time.Second

// flood sends as many calls as it can, while the victim goes on with its work.
func (g *game) flood() error {
	ctx, stop := context.WithCancel(g.ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		body := make([]byte, 200<<10)
		for i := 0; ctx.Err() == nil; i++ {
			_ = g.x.PublishRequest("rpc."+g.X+"."+EchoMethod, "_INBOX."+g.X+".flood", body)
			if i%50 == 0 {
				_ = g.x.FlushTimeout(5 * time.Second)
			}
		}
	})
	slow := 0
	for from := time.Now(); time.Since(from) < floodTime; {
		began := time.Now()
		if err := g.works(); err != nil || time.Since(began) > 2*time.Second {
			slow++
		}
	}
	stop()
	wg.Wait()
	g.result("keeping others from being answered within 2 s by a flood", slow > 0)
	return g.x.FlushTimeout(20 * time.Second)
}

// crowd opens more connections and subscriptions than an account may have.
func (g *game) crowd() error {
	var open []*nats.Conn
	for range 20 {
		nc, err := g.Attack(nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			break
		}
		open = append(open, nc)
	}
	g.result("opening more than 4 connections", len(open) > 3) // the attacker's first connection is open already
	refused := make(chan struct{}, 1)
	g.x.SetErrorHandler(func(*nats.Conn, *nats.Subscription, error) {
		select {
		case refused <- struct{}{}:
		default:
		}
	})
	var subs []*nats.Subscription
	for i := range 200 {
		sub, err := g.x.SubscribeSync(fmt.Sprintf("_INBOX.%s.%d", g.X, i))
		if err == nil {
			subs = append(subs, sub)
		}
	}
	_ = g.x.FlushTimeout(5 * time.Second)
	select {
	case <-refused:
		g.result("subscribing without end", false)
	case <-time.After(time.Second):
		g.result("subscribing without end", true)
	}
	for _, sub := range subs {
		_ = sub.Unsubscribe()
	}
	for _, nc := range open {
		nc.Close()
	}
	return nil
}
