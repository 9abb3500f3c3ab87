package machine

import (
	"net"
	"os"
	"strings"
)

// manager tells who manages services on this machine how the service is, by the protocol of
// sd_notify(3): a datagram to the socket that NOTIFY_SOCKET names. Without one nobody is told.
type manager struct{ socket string }

// managed answers who manages this process. What the process starts is not to speak for it.
func managed() manager {
	socket := os.Getenv("NOTIFY_SOCKET")
	os.Unsetenv("NOTIFY_SOCKET") //nolint:errcheck // it may stay: only this process is listened to
	return manager{socket}
}

// tell sends lines such as READY=1. Whoever does not hear them waits in vain and says so, which is
// more than could be said here.
func (m manager) tell(lines ...string) {
	if m.socket == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"}) // one that begins with @ is abstract
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(strings.Join(lines, "\n")))
}
