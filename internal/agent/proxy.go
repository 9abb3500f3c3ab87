package agent

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"yardmaster/internal/agent/modelproxy"
)

func (b *box) socketPath() string { return filepath.Join(b.cfg.DataDir, "model.sock") }

// startProxy serves the model proxy on a port of loopback, and on a socket for
// sandboxes that have no network. Whoever reaches either needs a run's token.
func (b *box) startProxy() error {
	b.proxy = modelproxy.New(modelproxy.Config{Logger: b.log})
	tcp, err := modelproxy.Listen()
	if err != nil {
		return fmt.Errorf("model proxy: %w", err)
	}
	b.port = tcp.Addr().String()
	if err := os.Remove(b.socketPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(fmt.Errorf("model proxy: %w", err), tcp.Close())
	}
	unix, err := net.Listen("unix", b.socketPath())
	if err == nil {
		err = os.Chmod(b.socketPath(), 0o666) // an agent of a root box is another user
	}
	if err != nil {
		return errors.Join(fmt.Errorf("model proxy: socket (its path may have 107 bytes): %w", err), tcp.Close())
	}
	for _, l := range []net.Listener{tcp, unix} {
		b.tasks.Go(func() {
			if err := b.proxy.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				b.log.Error("model proxy stopped", "error", err)
			}
		})
	}
	return nil
}
