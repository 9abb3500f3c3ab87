package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"yardmaster/internal/dial"
)

// Outside is a service elsewhere that a setting names.
type Outside struct {
	Address string // without what may be a secret in it
	For     string
	Setting string
}

// GitHub tells whether the settings connect the server to the GitHub of github-url. The default
// of that alone does not.
func (c *Config) GitHub() bool {
	return c.GitHubID != "" || c.GitHubApp != "" || c.GitHubURL != "https://github.com"
}

// Outside are the services that the settings name. Those of the code host are the caller's to
// say: it knows the addresses of its API.
func (c *Config) Outside() (all []Outside) {
	add := func(on bool, setting, address, what string) {
		u, err := url.Parse(address)
		if on && err == nil && u.Host != "" {
			all = append(all, Outside{u.Scheme + "://" + u.Host, what, setting})
		}
	}
	add(!strings.HasPrefix(c.Database, "sqlite:"), "database", c.Database, "rows")
	add(strings.HasPrefix(c.Blob, "s3"), "blob", c.Blob, "objects")
	for address := range strings.SplitSeq(c.NATSServers, ",") {
		add(address != "", "nats-servers", address, "calls of boxes")
	}
	add(true, "redis", c.Redis, "counts of requests")
	add(true, "smtp-url", c.SMTPURL, "mails")
	add(true, "otlp-endpoint", c.OTLPEndpoint, "traces")
	add(true, "audit-heads-webhook", c.HeadsHook, "heads of the record")
	add(c.ACME != "off", "acme", c.ACME, "certificates")
	add(c.StripeKey != "", "stripe-url", c.StripeURL, "payments")
	return all
}

// settleOutside checks whether the server is cut off, and where profiles are read.
func (c *Config) settleOutside() error {
	if c.AirGapped != "on" && c.AirGapped != "off" {
		return fmt.Errorf("air-gapped (from %s): %q is neither on nor off", c.sources["air-gapped"], c.AirGapped)
	}
	if c.ProfileListen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.ProfileListen)
	if err != nil || port == "" {
		return fmt.Errorf("profile-listen (from %s): %q has not the form host:port", c.sources["profile-listen"], c.ProfileListen)
	}
	if !dial.Loopback(host) {
		return errors.New("profile-listen: has to be on this machine, such as 127.0.0.1:6060: a profile shows what the server works on, and asks nobody who they are")
	}
	if slices.Contains([]string{c.Listen, c.MetricsListen}, c.ProfileListen) && port != "0" {
		return errors.New("profile-listen: is an address of its own")
	}
	return nil
}
