package config

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
)

// LetsEncrypt is the directory of the authority that acme: on asks.
const LetsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"

// SpeaksTLS tells whether the server's own listener does.
func (c *Config) SpeaksTLS() bool { return c.TLSCert != "" || c.ACME != "off" }

// CertifiedHost is the host of base-url.
func (c *Config) CertifiedHost() string {
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// settleTLS checks where the certificate of the server comes from, and completes the address of
// the authority.
func (c *Config) settleTLS() error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("tls-cert and tls-key go together")
	}
	if u, err := url.Parse(c.BaseURL); c.SpeaksTLS() && c.BaseURL != "" && (err != nil || u.Scheme != "https") {
		return fmt.Errorf("base-url (from %s): begins not with https://, and the server speaks TLS", c.sources["base-url"])
	}
	if c.ACME == "off" {
		if c.ACMEMail != "" || c.ACMEListen != "" || c.ACMERoots != "" {
			return errors.New("acme-email, acme-listen and acme-roots are of no use without acme")
		}
		return nil
	}
	if c.ACME == "on" {
		c.ACME = LetsEncrypt
	}
	wrong := func(key, format string, args ...any) error {
		return fmt.Errorf("%s (from %s): %s", key, c.sources[key], fmt.Sprintf(format, args...))
	}
	u, err := url.Parse(c.ACME)
	_, port, split := net.SplitHostPort(c.ACMEListen)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return wrong("acme", "%q is neither off, on nor the address of a directory such as %s", c.ACME, LetsEncrypt)
	case c.TLSCert != "":
		return errors.New("of tls-cert and acme only one can be given")
	case c.Cluster == "on":
		return wrong("acme", "nodes of a cluster do not share what an authority certifies: give each the files (tls-cert), or have a balancer speak TLS")
	case c.CertifiedHost() == "" || net.ParseIP(c.CertifiedHost()) != nil:
		return wrong("acme", "the name to certify is that of base-url, such as https://yardmaster.example.com")
	case c.ACMEListen != "" && (split != nil || port == ""):
		return wrong("acme-listen", "%q has not the form host:port", c.ACMEListen)
	}
	if _, err := mail.ParseAddress(c.ACMEMail); c.ACMEMail != "" && err != nil {
		return wrong("acme-email", "%q is not an address such as ops@example.com", c.ACMEMail)
	}
	return nil
}
