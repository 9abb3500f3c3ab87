package box_test

import (
	"context"
	"strings"

	"yardmaster/internal/bus"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// listen starts the bus at its address, or at the first one that nobody has.
func (p *plane) listen(ctx context.Context) *bus.Bus {
	p.t.Helper()
	if p.cfg.Listen != "" {
		// A process that the box has just begun to start holds what this one has open
		// until it runs its program, the listener of the bus before among it.
		var b *bus.Bus
		var err error
		patience.Come(p.t, func() bool {
			b, err = bus.Start(ctx, p.cfg)
			return err == nil || !strings.Contains(err.Error(), p.cfg.Listen+" is taken")
		})
		if err != nil {
			p.t.Fatal(err)
		}
		return b
	}
	var err error
	for range 100 {
		cfg := p.cfg
		cfg.Listen = loopback.Address()
		var b *bus.Bus
		if b, err = bus.Start(ctx, cfg); err == nil {
			return b
		}
		if !strings.Contains(err.Error(), cfg.Listen+" is taken") {
			break
		}
	}
	p.t.Fatal(err)
	return nil
}

// boot starts the bus, the first time or again.
func (p *plane) boot() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.halt = cancel
	p.bus = p.listen(ctx)
	p.cfg.Listen = p.bus.Addr()
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
