package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"yardmaster/internal/dial"
)

// settleNATS checks how boxes connect, and completes NATSURL. What they say does not
// cross a network in the clear unless nats-insecure says so.
func (c *Config) settleNATS() error {
	var err error
	if c.NATSURL, err = c.natsAddresses("nats-url", c.NATSURL); err != nil {
		return err
	}
	if c.NATSServers, err = c.natsAddresses("nats-servers", c.NATSServers); err != nil {
		return err
	}
	if c.NATSServers != "" {
		return c.settleNATSServers()
	}
	if c.NATSOperator != "" || c.NATSSystem != "" {
		return errors.New("nats-operator-key and nats-system-creds are for nats-servers, which is not set")
	}
	if _, port, err := net.SplitHostPort(c.NATSListen); err != nil || port == "" {
		return fmt.Errorf("nats-listen (from %s): %q has not the form host:port", c.sources["nats-listen"], c.NATSListen)
	}
	switch c.NATSTLS {
	case "auto", "on", "off":
	case acme:
		if err := c.settleCertifiedNATS(); err != nil {
			return fmt.Errorf("nats-tls (from %s): is acme, and %w", c.sources["nats-tls"], err)
		}
	default:
		return fmt.Errorf("nats-tls (from %s): %q is none of auto, on, acme, off", c.sources["nats-tls"], c.NATSTLS)
	}
	if c.NATSInsecure != "on" && c.NATSInsecure != "off" {
		return fmt.Errorf("nats-insecure (from %s): %q is neither on nor off", c.sources["nats-insecure"], c.NATSInsecure)
	}
	if (c.NATSCert == "") != (c.NATSKey == "") {
		return errors.New("nats-tls-cert and nats-tls-key go together")
	}
	if c.NATSCert != "" && c.NATSTLS == "off" {
		return errors.New("nats-tls-cert is of no use with nats-tls: off; leave one of them out")
	}
	where, is := c.natsElsewhere()
	// What has tls:// in nats-url has something before the server that speaks TLS.
	if where != "" && c.NATSTLS == "off" && c.NATSInsecure != "on" && !(where == "nats-url" && strings.HasPrefix(is, "tls://")) {
		return fmt.Errorf("nats-tls (from %s): is off, and %s is %s, so that what boxes say, their calls and the work of their agents, "+
			"would cross the network in the clear. Leave nats-tls out: the server then makes a certificate that its boxes know. "+
			"Or say nats-insecure: on, if something else protects that network", c.sources["nats-tls"], where, is)
	}
	if !c.NATSClear() {
		c.NATSURL = strings.ReplaceAll(c.NATSURL, "nats://", "tls://")
	}
	return nil
}

// acme is the value of nats-tls by which the bus has the certificate of the server.
const acme = "acme"

// settleCertifiedNATS checks that boxes connect to the name that an authority certifies.
func (c *Config) settleCertifiedNATS() error {
	host := c.CertifiedHost()
	switch {
	case c.ACME == "off":
		return errors.New("acme is off: nobody certifies the server")
	case c.NATSCert != "":
		return errors.New("nats-tls-cert is another certificate: leave one of them out")
	case c.NATSURL == "":
		_, port, err := net.SplitHostPort(c.NATSListen)
		c.NATSURL = "tls://" + net.JoinHostPort(host, port)
		return err
	}
	for address := range strings.SplitSeq(c.NATSURL, ",") {
		if u, err := url.Parse(address); err != nil || u.Hostname() != host {
			return fmt.Errorf("%s of nats-url has not the host of base-url, which is certified", address)
		}
	}
	return nil
}

// NATSCertified tells whether the bus has the certificate of the server, from an authority.
func (c *Config) NATSCertified() bool { return c.NATSTLS == acme }

// settleNATSServers checks how the server and boxes use a NATS cluster of somebody else. Its listeners are not ours to
// say: nats-listen and nats-tls say nothing then.
func (c *Config) settleNATSServers() error {
	if c.NATSOperator == "" || c.NATSSystem == "" {
		return errors.New("nats-servers needs nats-operator-key and nats-system-creds: the server writes the accounts of boxes there")
	}
	if c.NATSInsecure != "on" && c.NATSInsecure != "off" {
		return fmt.Errorf("nats-insecure (from %s): %q is neither on nor off", c.sources["nats-insecure"], c.NATSInsecure)
	}
	if c.NATSURL == "" {
		c.NATSURL = c.NATSServers
	}
	for _, of := range []struct{ key, is string }{{"nats-servers", c.NATSServers}, {"nats-url", c.NATSURL}} {
		for address := range strings.SplitSeq(of.is, ",") {
			u, err := url.Parse(address)
			if err != nil || u.Scheme == "nats" && !dial.Loopback(u.Hostname()) && c.NATSInsecure != "on" {
				return fmt.Errorf("%s (from %s): what boxes say would cross the network to %s in the clear. Have the servers speak TLS, "+
					"with handshake_first, and write tls://; or say nats-insecure: on, if something else protects that network",
					of.key, c.sources[of.key], address)
			}
		}
	}
	return nil
}

// natsAddresses writes addresses as scheme://host:port, with commas between and nothing else. All have one
// scheme, because a box has one way to connect.
func (c *Config) natsAddresses(setting, list string) (string, error) {
	var all []string
	scheme := ""
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		wrong := func(what string) (string, error) {
			return "", fmt.Errorf("%s (from %s): %q %s", setting, c.sources[setting], address, what)
		}
		whole := strings.TrimSuffix(address, "/")
		if !strings.Contains(whole, "://") {
			whole = "nats://" + whole
		}
		u, err := url.Parse(whole)
		if err == nil && u.Scheme != "nats" && u.Scheme != "tls" {
			return wrong("begins with neither nats:// nor tls://")
		}
		if err == nil && u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), "4222")
		}
		if err == nil {
			_, port, split := net.SplitHostPort(u.Host)
			_, number := strconv.ParseUint(port, 10, 16)
			err = errors.Join(split, number)
		}
		if err != nil || u.Hostname() == "" || *u != (url.URL{Scheme: u.Scheme, Host: u.Host}) {
			return wrong("is not an address such as nats://bus.example.com:4222")
		}
		if scheme != "" && u.Scheme != scheme {
			return wrong("and another address of it do not both begin with nats:// or both with tls://")
		}
		scheme = u.Scheme
		all = append(all, u.String())
	}
	return strings.Join(all, ","), nil
}

// NATSClear tells whether boxes connect in the clear: if nats-tls says so, or by
// itself as long as they connect on this machine alone.
func (c *Config) NATSClear() bool {
	where, _ := c.natsElsewhere()
	return c.NATSTLS == "off" || c.NATSTLS == "auto" && c.NATSCert == "" && where == ""
}

// natsElsewhere is the setting by which boxes of other machines connect, and what it is;
// "" if none does. A listener at every address (0.0.0.0, or no host) is for them.
func (c *Config) natsElsewhere() (setting, is string) {
	if host, _, _ := net.SplitHostPort(c.NATSListen); !dial.Loopback(host) {
		return "nats-listen", c.NATSListen
	}
	for address := range strings.SplitSeq(c.NATSURL, ",") {
		if u, err := url.Parse(address); address != "" && (err != nil || !dial.Loopback(u.Hostname())) {
			return "nats-url", c.NATSURL
		}
	}
	return "", ""
}
