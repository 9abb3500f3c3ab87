// Package certificate gives listeners their certificates: out of two files, which are read again when
// they change, or of an authority that is asked by ACME and asked again in time.
package certificate

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// FileTLS is a configuration with the certificate and the key in two PEM files. The
// files are read again when one of them has changed; a pair that cannot be read is
// logged, and the one before stays.
func FileTLS(certificate, key string, log *slog.Logger) (*tls.Config, error) {
	f := &files{certificate: certificate, key: key, log: log}
	if err := f.read(); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: f.get, MinVersion: tls.VersionTLS12}, nil
}

type files struct {
	certificate, key string
	log              *slog.Logger

	mu   sync.Mutex
	last *tls.Certificate
	at   [2]time.Time // when each was changed
}

func (f *files) changed() (at [2]time.Time) {
	for i, name := range []string{f.certificate, f.key} {
		if info, err := os.Stat(name); err == nil {
			at[i] = info.ModTime()
		}
	}
	return at
}

func (f *files) read() error {
	f.at = f.changed()
	pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return fmt.Errorf("read the certificate %s and its key %s: %w", f.certificate, f.key, err)
	}
	f.last = &pair
	return nil
}

func (f *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed() != f.at {
		if err := f.read(); err != nil {
			f.log.Error("a certificate cannot be read again, and the one before is kept", "error", err)
		}
	}
	return f.last, nil
}
