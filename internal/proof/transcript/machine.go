package transcript

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/crypto/ssh"

	"yardmaster/internal/db"
	"yardmaster/internal/remote/remotetest"
)

// startWithMachine is start with a key for SSH, and a machine that lets nobody in.
func startWithMachine(t *testing.T, e db.Engine) (y *yard, port string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "ssh-key")
	if err := os.WriteFile(key, remotetest.NewFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	m := (&remotetest.Machine{Lets: func(string, ssh.PublicKey) bool { return false }}).Start(t)
	return start(t, e, "--allow-networks", "127.0.0.0/8", "--ssh-key-file", key), strconv.Itoa(m.Port)
}
