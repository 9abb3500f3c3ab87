package config

import (
	"bytes"
	"strings"
	"testing"
)

// Boxes of other machines do not connect in the clear unless it is said in words.
func TestBoxesConnectOverTLS(t *testing.T) {
	t.Parallel()
	env := environment(map[string]string{"YARDMASTER_DATA": t.TempDir()})
	const refused = "would cross the network in the clear"
	for _, c := range []struct {
		args  string
		clear bool
		says  string
	}{
		{"", true, ""},
		{"--nats-listen=localhost:0", true, ""},
		{"--nats-listen=[::1]:4222", true, ""},
		{"--nats-listen=127.0.0.2:4222 --nats-url=nats://127.0.0.1:4333", true, ""},
		{"--nats-listen=0.0.0.0:4222", false, ""},
		{"--nats-listen=:4222", false, ""},
		{"--nats-listen=[::]:4222", false, ""},
		{"--nats-listen=10.0.0.7:4222", false, ""},
		{"--nats-listen=bus.example.com:4222", false, ""},
		{"--nats-url=nats://bus.example.com:4222", false, ""},
		{"--nats-url=bus.example.com:4222", false, ""},
		{"--nats-url=nats://127.0.0.1:1,tls://bus.example.com:4222", false, ""},
		{"--nats-tls=on", false, ""},
		{"--nats-tls-cert=c.pem --nats-tls-key=k.pem", false, ""},
		{"--nats-tls=off", true, ""},
		{"--nats-tls=off --nats-url=tls://bus.example.com:4222", true, ""}, // something before the server speaks TLS
		{"--nats-tls=off --nats-listen=0.0.0.0:4222", false, refused},
		{"--nats-tls=off --nats-listen=:4222", false, refused},
		{"--nats-tls=off --nats-listen=192.168.1.2:4222", false, refused},
		{"--nats-tls=off --nats-url=nats://bus.example.com:4222", false, refused},
		{"--nats-tls=off --nats-url=bus.example.com:4222", false, refused},
		{"--nats-tls=off --nats-listen=0.0.0.0:4222 --nats-url=tls://bus.example.com:4222", false, refused},
		{"--nats-tls=off --nats-listen=0.0.0.0:4222 --nats-insecure=on", true, ""},
		{"--nats-listen=0.0.0.0:4222 --nats-insecure=on", false, ""},
		{"--nats-tls=perhaps", false, "none of auto, on, off"},
		{"--nats-insecure=yes", false, "neither on nor off"},
		{"--nats-tls-cert=c.pem", false, "go together"},
		{"--nats-tls-key=k.pem", false, "go together"},
		{"--nats-tls=off --nats-tls-cert=c.pem --nats-tls-key=k.pem", false, "of no use"},
	} {
		cfg, err := Load("serve", strings.Fields(c.args), env, new(bytes.Buffer))
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", c.args, err)
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.args, err)
		case c.says == "" && cfg.NATSClear() != c.clear:
			t.Errorf("%s: boxes connect in the clear: %v", c.args, cfg.NATSClear())
		case c.says == refused &&
			(!strings.Contains(err.Error(), "Leave nats-tls out") || !strings.Contains(err.Error(), "nats-insecure: on")):
			t.Errorf("%s: it does not say what to do: %v", c.args, err)
		}
	}
}
