package machine

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestManagerIsTold holds what is sent, to a socket of either kind, and that nothing this process
// starts can say it as well.
func TestManagerIsTold(t *testing.T) { // alone: it sets a variable of the process
	dir := t.TempDir()
	for _, name := range []string{filepath.Join(dir, "notify"), "@yardmaster-test-" + filepath.Base(dir)} {
		c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		m := managed()
		if left, ok := os.LookupEnv("NOTIFY_SOCKET"); ok {
			t.Errorf("NOTIFY_SOCKET is left: %q", left)
		}
		m.tell("READY=1", "STATUS=serves")
		b := make([]byte, 100)
		n, err := c.Read(b)
		if err != nil || string(b[:n]) != "READY=1\nSTATUS=serves" {
			t.Errorf("%s hears %q, %v", name, b[:n], err)
		}
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "nobody"))
	managed().tell("READY=1") // nobody is there, and nothing breaks
	managed().tell("READY=1") // nobody is named
}
