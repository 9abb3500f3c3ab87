package app

import (
	"crypto/tls"
	"net"
	"path/filepath"

	"yardmaster/internal/api/held"
	"yardmaster/internal/certificate"
)

// certified finds the certificate of the listener, if the server speaks TLS itself. A copy that is
// only looked at is asked on its own machine.
func (a *App) certified() (err error) {
	switch {
	case !a.cfg.SpeaksTLS() || a.opts.Still:
	case a.cfg.TLSCert != "":
		a.secure, err = certificate.FileTLS(a.cfg.TLSCert, a.cfg.TLSKey, a.log)
	default:
		a.authority, err = certificate.NewACME(certificate.Authority{
			Directory: a.cfg.ACME, Email: a.cfg.ACMEMail, Roots: a.cfg.ACMERoots, Name: a.cfg.CertifiedHost(), Base: a.base,
			Folder: filepath.Join(a.cfg.Data, "acme"), Listen: a.listens, Plain: a.cfg.ACMEListen, Logger: a.log, Limited: fewAtOnce,
		})
		if err == nil {
			a.secure = a.authority.TLS()
		}
	}
	return err
}

// fewAtOnce keeps the connections of a listener few on which nobody is served but who certifies the
// server, and who is led to it: beyond them the one that is open for the longest time is closed.
func fewAtOnce(l net.Listener) net.Listener {
	return held.NewConns(held.Limits{All: 256, PerAddress: 16}, nil, nil, nil).Listener(l)
}

// secured is a listener that speaks TLS if the server does.
func (a *App) secured(l net.Listener) net.Listener {
	if a.secure == nil {
		return l
	}
	return tls.NewListener(l, a.secure)
}
