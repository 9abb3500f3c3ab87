package mail

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

// sendTime bounds the delivery of one letter.
const sendTime = 30 * time.Second

// SMTP sends letters to a mail server.
type SMTP struct {
	host    string
	options []gomail.Option
}

// ParseSMTP reads the address of a mail server: smtps://user:password@host:465
// for TLS from the first byte, smtp://user:password@host:587 for STARTTLS
// (required), smtp+plain://host:25 for neither. User and port are optional. The
// HELO name is ?helo=, or else the parameter helo; a name that is an IP address or
// has no dot is replaced by the machine's own name.
func ParseSMTP(address, helo string) (*SMTP, error) {
	u, err := url.Parse(address)
	if err != nil {
		// The cause repeats the address, which may hold a password.
		return nil, errors.New("is not an address of the form smtp://user:password@host:587")
	}
	s := &SMTP{host: u.Hostname(), options: []gomail.Option{gomail.WithTimeout(sendTime), gomail.WithoutNoop()}}
	port := 587
	switch u.Scheme {
	case "smtps":
		port = 465
		s.options = append(s.options, gomail.WithSSL())
	case "smtp":
		s.options = append(s.options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case "smtp+plain":
		port = 25
		s.options = append(s.options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, errors.New("must begin with smtp://, smtps:// or smtp+plain://")
	}
	if s.host == "" {
		return nil, errors.New("names no host")
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return nil, errors.New("has a port that is none")
		}
	}
	s.options = append(s.options, gomail.WithPort(port))
	if said := u.Query().Get("helo"); said != "" {
		helo = said
	}
	if _, err := netip.ParseAddr(helo); err != nil && strings.Contains(helo, ".") {
		s.options = append(s.options, gomail.WithHELO(helo))
	}
	if u.User != nil {
		password, _ := u.User.Password()
		auth := gomail.SMTPAuthAutoDiscover
		if u.Scheme == "smtp+plain" {
			auth = gomail.SMTPAuthPlainNoEnc
		}
		s.options = append(s.options, gomail.WithSMTPAuth(auth), gomail.WithUsername(u.User.Username()), gomail.WithPassword(password))
	}
	return s, nil
}

// Send delivers a letter over a connection of its own. A reply of 500 or more is a
// permanent error.
func (s *SMTP) Send(ctx context.Context, l Letter) error {
	m, err := l.compose()
	if err != nil {
		return err
	}
	options := s.options
	if !l.foreign() {
		// A relay that received a letter with SMTPUTF8 may refuse to pass it to a
		// server without the extension.
		options = append(slices.Clone(options), gomail.WithoutSMTPUTF8())
	}
	c, err := gomail.NewClient(s.host, options...)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", s.host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	err = c.DialAndSendWithContext(ctx, m)
	var refused *gomail.SendError
	if errors.As(err, &refused) && refused.ErrorCode() >= 500 {
		return permanent(err)
	}
	return err
}
