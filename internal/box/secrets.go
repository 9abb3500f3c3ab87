package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"yardmaster/internal/box/broker"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// SecretsVariable names the address at which an agent uses the secrets of its
// run: behind it a host's name for those that the box adds, -/env for the rest.
const SecretsVariable = "YARDMASTER_SECRETS_URL"

// secretsPort is where a sandbox with a network of its own finds the broker.
const secretsPort = 7071

// secretsEvery is how often the control plane is asked for a run's secrets at
// most: an agent can make the box ask.
const secretsEvery = 2 * time.Second

// secrets are what an attempt may use of the vaults. They are in this process
// alone: the key that they are sealed to is never written down.
type secrets struct {
	mu    sync.Mutex
	have  broker.Secrets
	asked time.Time
}

func (b *box) brokerPath() string { return filepath.Join(b.cfg.DataDir, "secrets.sock") }

// startBroker serves the broker on a port of loopback, and on a socket for
// sandboxes that have no network. Whoever reaches either needs a run's token.
func (b *box) startBroker() error {
	b.broker = broker.New(broker.Config{Logger: b.log, Roots: b.cfg.Roots, Private: b.cfg.Egress})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.brokerPort = tcp.Addr().String()
	return b.serveAt("broker", tcp, b.brokerPath(), b.broker.Serve)
}

// fetchSecrets gets what the attempt may use, until it has it or ctx ends.
func (b *box) fetchSecrets(ctx context.Context, a *attempt) error {
	a.vault = &secrets{}
	for {
		_, err := b.secretsOf(ctx, a, true)
		if err == nil || ctx.Err() != nil {
			return err
		}
		a.log.Warn("secrets not had yet", "error", err)
		sleep(ctx, b.cfg.Timing.Retry)
	}
}

// secretsOf answers what the attempt may use; fresh asks the control plane,
// unless it was asked just now.
func (b *box) secretsOf(ctx context.Context, a *attempt, fresh bool) (broker.Secrets, error) {
	v := a.vault
	v.mu.Lock()
	defer v.mu.Unlock()
	if !fresh || !v.asked.IsZero() && time.Since(v.asked) < secretsEvery {
		return v.have, nil
	}
	call, done := context.WithTimeout(ctx, b.cfg.Timing.Renew/2)
	defer done()
	var reply protocol.Secrets
	err := b.conn.Call(call, protocol.CallSecrets, protocol.SecretsAsk{Run: a.start.Run, Attempt: a.start.Attempt}, &reply)
	var refused *fault.Error
	if errors.As(err, &refused) && refused.Slug == protocol.OtherProcess {
		b.greetAgain()
	}
	if err != nil {
		return broker.Secrets{}, err
	}
	text, err := b.secret.Open(protocol.SecretsPurpose(a.start.Run), reply.Sealed)
	if err != nil {
		b.greetAgain()
		return broker.Secrets{}, err
	}
	var list []protocol.Secret
	if err := json.Unmarshal(text, &list); err != nil {
		return broker.Secrets{}, errors.New("the secrets cannot be read") // the cause could quote them
	}
	have := broker.Secrets{Env: map[string]string{}}
	for _, s := range list {
		value := string(s.Value)
		a.secrets.Add(value) // before anybody has it
		switch s.Delivery {
		case protocol.DeliverEnv:
			have.Env[s.Name] = value
		case protocol.DeliverBroker:
			have.Credentials = append(have.Credentials, broker.Credential{Hosts: s.Hosts, Header: s.Header, Value: s.Prefix + value})
		}
	}
	v.have, v.asked = have, time.Now()
	return have, nil
}

// outdate makes the next who asks for fresh secrets get them, however short ago
// somebody did: a person has just said something, maybe that there are new ones.
func (v *secrets) outdate() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = time.Time{}
}

// lendSecrets lets the agent of the attempt use the broker.
func (b *box) lendSecrets(a *attempt) error {
	return b.broker.Register(broker.Run{
		Token: a.token, Scrubber: a.secrets,
		Secrets: func(ctx context.Context, fresh bool) (broker.Secrets, error) { return b.secretsOf(ctx, a, fresh) },
	})
}
