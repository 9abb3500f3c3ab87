package box

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"yardmaster/internal/box/modelproxy"
)

func (b *box) socketPath() string { return filepath.Join(b.cfg.DataDir, "model.sock") }

// startProxy serves the model proxy on a loopback port, and on a socket for
// sandboxes without a network. Both need a run's token.
func (b *box) startProxy() error {
	b.proxy = modelproxy.New(modelproxy.Config{Logger: b.log})
	tcp, err := modelproxy.Listen()
	if err != nil {
		return fmt.Errorf("model proxy: %w", err)
	}
	b.port = tcp.Addr().String()
	return b.serveAt("model proxy", tcp, b.socketPath(), b.proxy.Serve)
}

// listenUnix opens a socket that agents may connect to, including those of a root
// box, which are another user.
func listenUnix(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("open a socket (its path may have 107 bytes): %w", err)
	}
	return l, nil
}

// serveAt serves on a loopback port and on a socket until serve ends.
func (b *box) serveAt(name string, tcp net.Listener, path string, serve func(net.Listener) error) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("%s: %w", name, err), tcp.Close())
	}
	unix, err := listenUnix(path)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", name, err), tcp.Close())
	}
	for _, l := range []net.Listener{tcp, unix} {
		b.tasks.Go(func() {
			if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
				b.log.Error(name+" stopped", "error", err)
			}
		})
	}
	return nil
}
