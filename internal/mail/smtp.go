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
	host     string
	options  []gomail.Option
	patience time.Duration // for one letter
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
	s := &SMTP{host: u.Hostname(), options: []gomail.Option{gomail.WithoutNoop()}, patience: sendTime}
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

func (s *SMTP) client(options ...gomail.Option) (*gomail.Client, error) {
	c, err := gomail.NewClient(s.host, append(append(slices.Clone(s.options), gomail.WithTimeout(s.patience)), options...)...)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errDown, s.host, err)
	}
	return c, nil
}

// Greet connects as Send does, up to the password, and sends nothing.
func (s *SMTP) Greet(ctx context.Context) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	if err := c.DialWithContext(ctx); err != nil {
		return err
	}
	return c.Close()
}

// Send delivers a letter over a connection of its own. A reply of 500 or more about the
// recipient or the content is a permanent error. Without a connection, TLS, or leave to
// send, the server is down.
func (s *SMTP) Send(ctx context.Context, l Letter) error {
	m, err := l.compose()
	if err != nil {
		return err
	}
	var options []gomail.Option
	if !l.foreign() {
		// A relay that received a letter with SMTPUTF8 may refuse to pass it to a
		// server without the extension.
		options = append(options, gomail.WithoutSMTPUTF8())
	}
	c, err := s.client(options...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err = c.DialAndSendWithContext(ctx, m)
	if m.IsDelivered() {
		return nil // what follows the server's yes, such as a lost connection, changes nothing
	}
	return judge(err)
}

// judge says what an error of a delivery is about: the server, the address or the letter.
func judge(err error) error {
	var refused *gomail.SendError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", errDown, err) // no connection, no TLS, or a wrong password
	}
	code, detail := refused.ErrorCode(), refused.EnhancedStatusCode()
	const shuttingDown, tooLarge = 421, 552
	switch {
	case code == shuttingDown, refused.Reason == gomail.ErrSMTPMailFrom && code >= 500 && code != tooLarge:
		return fmt.Errorf("%w: %w", errDown, err)
	case code < 500:
		return err
	case refused.Reason == gomail.ErrSMTPRcptTo && gone(code, detail, err.Error()):
		return permanent(fmt.Errorf("%w: %w", ErrAddress, err))
	}
	return permanent(err)
}

// gone tells whether an answer to RCPT means that there is no such mailbox (RFC 5321,
// section 4.2.3; RFC 3463, sections 3.2 and 3.3), rather than a full one or a rule.
func gone(code int, detail, text string) bool {
	if detail != "" {
		return strings.HasPrefix(detail, "5.1.") || detail == "5.2.1"
	}
	return (code == 550 || code == 551 || code == 553) && !strings.Contains(strings.ToLower(text), "relay")
}
