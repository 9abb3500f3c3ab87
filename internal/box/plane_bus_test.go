package box_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"yardmaster/internal/bus"
	"yardmaster/internal/protocol"
)

// lowPort is a free address with a port that the kernel gives to nobody who asks for any: a
// bus that is started again finds it free.
func lowPort(t *testing.T) string {
	t.Helper()
	for range 100 {
		at := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", at); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatal("no port is free")
	return ""
}

// boot starts the bus, the first time or again.
func (p *plane) boot() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.halt = cancel
	if p.cfg.Listen == "" {
		p.cfg.Listen = lowPort(p.t)
	}
	b, err := bus.Start(ctx, p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.bus = b
	p.cfg.Listen = strings.TrimPrefix(p.bus.URL(), "nats://")
	for method, fn := range map[string]func(context.Context, string, []byte) (any, error){
		protocol.CallHello: handler(p.hello), protocol.CallClaim: handler(p.claim), protocol.CallAccept: handler(p.accept),
		protocol.CallRenew: handler(p.renew), protocol.CallCredential: handler(p.credential), protocol.CallGitToken: handler(p.gitToken),
		protocol.CallSecrets: handler(p.vault), protocol.CallAppend: handler(p.append), protocol.CallBeat: handler(p.beat),
		protocol.CallCommands: handler(p.next), protocol.CallDone: handler(p.done),
	} {
		if err := p.bus.Handle(method, fn); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *plane) shutdown() {
	p.halt()
	if err := p.bus.Close(context.Background()); err != nil {
		p.t.Error(err)
	}
}
