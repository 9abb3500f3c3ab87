package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// settleNATS checks how boxes connect. What they say does not cross a network in
// the clear unless nats-insecure says so.
func (c *Config) settleNATS() error {
	if _, port, err := net.SplitHostPort(c.NATSListen); err != nil || port == "" {
		return fmt.Errorf("nats-listen (from %s): %q has not the form host:port", c.sources["nats-listen"], c.NATSListen)
	}
	switch c.NATSTLS {
	case "auto", "on", "off":
	default:
		return fmt.Errorf("nats-tls (from %s): %q is none of auto, on, off", c.sources["nats-tls"], c.NATSTLS)
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
	where := ""
	switch {
	case c.NATSTLS != "off" || c.NATSInsecure == "on":
	case !hereHost(c.NATSListen):
		where = "nats-listen is " + c.NATSListen
	case c.natsURLLeadsElsewhere("nats"):
		where = "nats-url is " + c.NATSURL
	}
	if where != "" {
		return fmt.Errorf("nats-tls (from %s): is off, and %s, so that what boxes say, their calls and the work of their agents, "+
			"would cross the network in the clear. Leave nats-tls out: the server then makes a certificate that its boxes know. "+
			"Or say nats-insecure: on, if something else protects that network", c.sources["nats-tls"], where)
	}
	return nil
}

// NATSClear tells whether boxes connect in the clear: if nats-tls says so, or by
// itself as long as they connect on this machine alone.
func (c *Config) NATSClear() bool {
	switch c.NATSTLS {
	case "on":
		return false
	case "off":
		return true
	}
	return c.NATSCert == "" && hereHost(c.NATSListen) && !c.natsURLLeadsElsewhere("nats", "tls")
}

// natsURLLeadsElsewhere tells whether an address of nats-url that has one of the
// schemes is not on this machine.
func (c *Config) natsURLLeadsElsewhere(schemes ...string) bool {
	for address := range strings.SplitSeq(c.NATSURL, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		if !strings.Contains(address, "://") {
			address = "nats://" + address
		}
		u, err := url.Parse(address)
		if err != nil {
			return true
		}
		for _, s := range schemes {
			if u.Scheme == s && !hereHost(u.Host) {
				return true
			}
		}
	}
	return false
}

// hereHost tells whether the host of host:port is this machine by name: localhost
// or a loopback address. Every address (0.0.0.0, or no host) is not.
func hereHost(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
