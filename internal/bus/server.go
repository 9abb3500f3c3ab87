package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
)

const (
	lameDuck      = 3 * time.Second
	lameDuckGrace = 500 * time.Millisecond
)

// startServer runs the embedded server, without JetStream: the server stores
// nothing. It returns once the server accepts connections.
func startServer(cfg Config, keys identity, resolver server.AccountResolver) (*server.Server, *server.Options, error) {
	o, err := serverOptions(cfg, keys, resolver)
	if err != nil {
		return nil, nil, err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return nil, nil, fmt.Errorf("configure the NATS server: %w", err)
	}
	log := &serverLog{log: cfg.Logger}
	s.SetLoggerV2(log, false, false, false)
	s.Start()
	if err := log.failure(); err != nil {
		s.Shutdown()
		return nil, nil, cfg.taken(err)
	}
	if !s.ReadyForConnections(time.Minute) {
		s.Shutdown()
		return nil, nil, errors.New("the NATS server was not ready after a minute")
	}
	return s, o, nil
}

// taken names the address that another program has, if that is why the server did not start.
func (c Config) taken(err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("start the NATS server: %w", err)
	}
	var at *net.OpError
	if c.Cluster != nil && errors.As(err, &at) && at.Addr != nil && at.Addr.String() == c.Cluster.Listen {
		return fmt.Errorf("the address %s is taken: give nats-routes another: %w", c.Cluster.Listen, err)
	}
	return TakenError(c.Listen)
}

func serverOptions(cfg Config, keys identity, resolver server.AccountResolver) (*server.Options, error) {
	host, port, err := splitListen(cfg.Listen)
	if err != nil {
		return nil, err
	}
	operator, err := keys.operatorClaims()
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: "yardmaster",
		Host:       host,
		Port:       port,
		TLSConfig:  cfg.TLS,
		TLSTimeout: 5,
		// Nothing is said before the handshake, so that neither side believes anything of
		// somebody between them. What connects within the process is let in without TLS.
		TLSHandshakeFirst: cfg.TLS != nil,
		TrustedOperators:  []*jwt.OperatorClaims{operator},
		AccountResolver:   resolver,
		SystemAccount:     keys.systemID,
		MaxConn:           cfg.Connections,
		MaxPayload:        1 << 20, // limits answers to boxes; accounts limit messages from boxes
		PingInterval:      20 * time.Second,
		NoSigs:            true,
		// What a server that stops takes to let its boxes go, where they have others to go to.
		LameDuckDuration: lameDuck, LameDuckGracePeriod: lameDuckGrace,
	}
	if cfg.Cluster != nil {
		if err := cfg.Cluster.join(o, cfg.Now); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// TakenError is the address at which another program listens already.
type TakenError string

func (e TakenError) Error() string {
	return fmt.Sprintf("the address %s is taken: give nats-listen another, each server on a machine needs its own", string(e))
}

func splitListen(listen string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("listen address: %w", err)
	}
	if port, err = strconv.Atoi(digits); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("listen address %q: bad port", listen)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// serverLog passes the server's log on at debug level, except for Fatalf, which it
// logs as an error and keeps.
type serverLog struct {
	log   *slog.Logger
	mu    sync.Mutex
	fatal error
}

func (l *serverLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

func (l *serverLog) debug(level, format string, v []any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, v...), "nats", level)
	}
}

func (l *serverLog) Noticef(format string, v ...any) { l.debug("notice", format, v) }
func (l *serverLog) Warnf(format string, v ...any)   { l.debug("warning", format, v) }
func (l *serverLog) Errorf(format string, v ...any)  { l.debug("error", format, v) }
func (l *serverLog) Debugf(format string, v ...any)  { l.debug("debug", format, v) }
func (l *serverLog) Tracef(format string, v ...any)  { l.debug("trace", format, v) }

// Fatalf keeps the error with which the server would end its process, for example
// when the port is taken.
func (l *serverLog) Fatalf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	l.log.Error("NATS server failed", "error", err)
	for _, a := range v {
		if cause, ok := a.(error); ok {
			err = cause // as it is, so that errors.Is recognises it
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = err
}
