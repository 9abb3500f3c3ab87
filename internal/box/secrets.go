package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/box/broker"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// SecretsVariable is the environment variable with the address of the broker.
// Behind it a host's name leads to the credentials that the broker adds, and -/env
// to the other secrets.
const SecretsVariable = "YARDMASTER_SECRETS_URL"

// secretsPort is the port of the broker in a sandbox with a network of its own.
const secretsPort = 7071

// secretsEvery is the shortest time between two requests for a run's secrets. An
// agent can cause such requests.
const secretsEvery = 2 * time.Second

// secrets holds what an attempt may use of the vaults. It exists in this process
// alone: the key that the control plane seals to is never written to disk.
type secrets struct {
	mu    sync.Mutex
	have  broker.Secrets
	apart map[string]string // variables of the prepare script alone
	asked time.Time
}

func (b *box) brokerPath() string { return filepath.Join(b.cfg.DataDir, "secrets.sock") }

// startBroker serves the broker on a loopback port, and on a socket for sandboxes
// without a network. Both need a run's token.
func (b *box) startBroker() error {
	b.broker = broker.New(broker.Config{Logger: b.log, Roots: b.cfg.Roots, Private: b.cfg.Egress})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.brokerPort = tcp.Addr().String()
	return b.serveAt("broker", tcp, b.brokerPath(), b.broker.Serve)
}

// fetchSecrets fetches the secrets of the attempt, and repeats it until it succeeds
// or ctx ends.
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

// secretsOf returns the secrets of the attempt. With fresh it asks the control
// plane, unless it did so less than secretsEvery ago.
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
		return broker.Secrets{}, errors.New("the secrets cannot be read") // the cause could quote the secrets
	}
	have, apart := broker.Secrets{Env: map[string]string{}}, map[string]string{}
	for _, s := range list {
		value := string(s.Value)
		a.secrets.Add(value) // before the agent can get it
		switch s.Delivery {
		case protocol.DeliverEnv:
			if e := a.start.Environment; e != nil && slices.Contains(e.Secrets, s.Name) {
				apart[s.Name] = value
			} else {
				have.Env[s.Name] = value
			}
		case protocol.DeliverBroker:
			have.Credentials = append(have.Credentials, broker.Credential{Hosts: s.Hosts, Header: s.Header, Value: s.Prefix + value})
		}
	}
	v.have, v.apart, v.asked = have, apart, time.Now()
	return have, nil
}

// ofScript returns the variables of the prepare script.
func (v *secrets) ofScript() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.apart)
}

// expire makes the next fresh request ask the control plane, however short ago the
// last one was: a person has just sent a message, perhaps about new secrets.
func (v *secrets) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = time.Time{}
}

// registerSecrets lets the agent of the attempt use the broker.
func (b *box) registerSecrets(a *attempt) error {
	return b.broker.Register(broker.Run{
		Token: a.token, Scrubber: a.secrets,
		Secrets: func(ctx context.Context, fresh bool) (broker.Secrets, error) { return b.secretsOf(ctx, a, fresh) },
	})
}
