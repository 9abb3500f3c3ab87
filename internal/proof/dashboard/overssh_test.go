//go:build !race

package dashboard_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/remote"
	"yardmaster/internal/remote/remotetest"
)

// TestBoxOverSSH adds a box that the server calls: its host key is shown first, and nothing runs
// before a person has said that it is the machine's.
func TestBoxOverSSH(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ssh-key")
	if err := os.WriteFile(file, remotetest.NewFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	y, b := begin(t, "--allow-networks", "127.0.0.0/8", "--ssh-key-file", file)
	mine := call[struct {
		PublicKey string `json:"public_key"`
	}](y, http.MethodGet, "/v1/runners/enrollments/ssh/key", "").PublicKey
	token := regexp.MustCompile(`dev_enr_\w+`)
	m := (&remotetest.Machine{
		Lets: func(_ string, key ssh.PublicKey) bool { return remote.Public(key) == mine },
		Runs: func(c remotetest.Command) int {
			script, err := io.ReadAll(c.Stdin)
			if err != nil {
				return 1
			}
			y.Box(token.FindString(string(script)))
			_, _ = io.WriteString(c.Stdout, "The box runs. "+nasty)
			return 0
		},
	}).Start(t)
	visit(b, "/ui/boxes", "Boxes")
	b.Button("Add a box")
	b.Button("over SSH")
	b.See(strings.TrimSpace(mine))
	shoot(b, "boxes-ssh")
	b.Fill("Machine", fmt.Sprintf("yard@127.0.0.1:%d", m.Port))
	b.Button("Call the machine")
	b.See(ssh.FingerprintSHA256(m.Key()))
	if len(m.Offered()) > 0 {
		t.Error("a key was offered to a machine that nobody knows")
	}
	shoot(b, "boxes-ssh-key")
	b.Button("It is that key: join it")
	b.See("It is a box now.")
	if browser.Eval[bool](b, `document.querySelector("dialog img") !== null`) {
		t.Error("what the machine has printed is not inert")
	}
	shoot(b, "boxes-ssh-joined")
	b.Button("Show it")
	heads(b, "bench")
	content(b)
}
