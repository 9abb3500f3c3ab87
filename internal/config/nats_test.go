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
	const theirs = "--nats-operator-key=k --nats-system-creds=c "
	const refused, certified = "would cross the network in the clear", "--base-url=https://yard.example.com --acme=on "
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
		{"--nats-url=tcp://bus.example.com:4222", false, "neither nats:// nor tls://"},
		{"--nats-url=nats://127.0.0.1:1,bus.example.com", false, ""},
		{"--nats-url=nats://bus.localhost:4222", true, ""},
		{"--nats-tls=on", false, ""},
		{"--nats-tls-cert=c.pem --nats-tls-key=k.pem", false, ""},
		{"--nats-tls=off", true, ""},
		{"--nats-tls=off --nats-url=tls://bus.example.com:4222", true, ""}, // something before the server speaks TLS
		{"--nats-tls=off --nats-listen=0.0.0.0:4222", false, refused},
		{"--nats-tls=off --nats-listen=:4222", false, refused},
		{"--nats-tls=off --nats-listen=192.168.1.2:4222", false, refused},
		{"--nats-tls=off --nats-url=nats://bus.example.com:4222", false, refused},
		{"--nats-tls=off --nats-url=bus.example.com:4222", false, refused},
		{"--nats-tls=off --nats-url=127.0.0.1,bus.example.com", false, refused},
		{"--nats-tls=off --nats-url=tcp://bus.example.com:4222", false, "neither nats:// nor tls://"},
		{"--nats-tls=off --nats-listen=0.0.0.0:4222 --nats-url=tls://bus.example.com:4222", false, refused},
		{"--nats-tls=off --nats-listen=0.0.0.0:4222 --nats-insecure=on", true, ""},
		{"--nats-listen=0.0.0.0:4222 --nats-insecure=on", false, ""},
		{"--nats-tls=perhaps", false, "none of auto, on, acme, off"},
		{certified + "--nats-tls=acme", false, ""},
		{certified + "--nats-tls=acme --nats-listen=0.0.0.0:4222", false, ""},
		{certified + "--nats-tls=acme --nats-url=yard.example.com:4333", false, ""},
		{certified + "--nats-tls=acme --nats-url=yard.example.com,bus.example.com", false, "has not the host of base-url"},
		{certified + "--nats-tls=acme --nats-url=127.0.0.1:4222", false, "has not the host of base-url"},
		{certified + "--nats-tls=acme --nats-tls-cert=c.pem --nats-tls-key=k.pem", false, "another certificate"},
		{"--nats-tls=acme", false, "nobody certifies the server"},
		{"--nats-insecure=yes", false, "neither on nor off"},
		{"--nats-tls-cert=c.pem", false, "go together"},
		{"--nats-tls-key=k.pem", false, "go together"},
		{"--nats-tls=off --nats-tls-cert=c.pem --nats-tls-key=k.pem", false, "of no use"},
		{"--nats-servers=127.0.0.1", true, "needs nats-operator-key"},
		{"--nats-operator-key=k", true, "nats-servers, which is not set"},
		{theirs + "--nats-servers=127.0.0.1", true, ""},
		{theirs + "--nats-servers=http://127.0.0.1", true, "neither nats:// nor tls://"},
		{theirs + "--nats-servers=bus.example.com", false, "would cross the network"},
		{theirs + "--nats-servers=bus.example.com --nats-insecure=on", false, ""},
		{theirs + "--nats-servers=127.0.0.1 --nats-url=bus.example.com", false, "would cross the network"},
		{theirs + "--nats-servers=tls://bus.example.com", false, ""},
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

// The addresses that boxes are told are written in one way, whatever way they were typed in.
func TestAddressesOfTheBus(t *testing.T) {
	t.Parallel()
	env := environment(map[string]string{"YARDMASTER_DATA": t.TempDir()})
	const mixed, none, scheme = "do not both begin", "is not an address such as", "neither nats:// nor tls://"
	for _, c := range []struct{ given, tls, want, says string }{
		{"", "auto", "", ""},
		{" , ", "auto", "", ""},
		{"127.0.0.1", "auto", "nats://127.0.0.1:4222", ""},
		{"localhost:1", "auto", "nats://localhost:1", ""},
		{"nats://[::1]", "auto", "nats://[::1]:4222", ""},
		{"[::1]:7", "auto", "nats://[::1]:7", ""},
		{"NATS://localhost:/", "auto", "nats://localhost:4222", ""},
		{"nats://[fe80::1%25eth0]", "on", "tls://[fe80::1%25eth0]:4222", ""},
		{"localhost, nats://127.0.0.1:1 ,\t127.0.0.2,", "auto", "nats://localhost:4222,nats://127.0.0.1:1,nats://127.0.0.2:4222", ""},
		{"bus.example.com", "auto", "tls://bus.example.com:4222", ""},
		{"nats://a.example.com, b.example.com:1", "auto", "tls://a.example.com:4222,tls://b.example.com:1", ""},
		{"nats://127.0.0.1", "on", "tls://127.0.0.1:4222", ""},
		{"TLS://bus.example.com", "off", "tls://bus.example.com:4222", ""},
		{"tcp://bus.example.com:4222", "auto", "", scheme},
		{"https://bus.example.com", "on", "", scheme},
		{"nats://127.0.0.1,ws://bus.example.com", "auto", "", scheme},
		{"nats://127.0.0.1,tls://bus.example.com", "auto", "", mixed},
		{"tls://bus.example.com,127.0.0.1", "off", "", mixed},
		{"nats://", "auto", "", none},
		{"nats://:4222", "auto", "", none},
		{"://bus.example.com", "auto", "", none},
		{"nats://::1", "auto", "", none},
		{"nats://localhost:bus", "auto", "", none},
		{"nats://localhost:65536", "auto", "", none},
		{"nats://ada:secret@localhost:4222", "auto", "", none},
		{"nats://localhost:4222/path", "auto", "", none},
		{"nats://local host", "auto", "", none},
	} {
		cfg, err := Load("serve", []string{"--nats-url", c.given, "--nats-tls", c.tls}, env, new(bytes.Buffer))
		switch {
		case c.says != "":
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "nats-url (from --nats-url)") {
				t.Errorf("%q: %v", c.given, err)
			}
		case err != nil:
			t.Errorf("%q: %v", c.given, err)
		case cfg.NATSURL != c.want:
			t.Errorf("%q, nats-tls %s: boxes are told %q, not %q", c.given, c.tls, cfg.NATSURL, c.want)
		}
	}
}
