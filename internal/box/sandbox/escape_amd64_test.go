package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"yardmaster/internal/proof/executable"
)

// TestProgramOf32BitsIsKilled holds that a 32-bit program is killed, because the filter
// does not know its call numbers.
func TestProgramOf32BitsIsKilled(t *testing.T) {
	// mov eax, 1 (exit); mov ebx, 42; int 0x80
	code := []byte{0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80}
	header := []byte{
		0x7f, 'E', 'L', 'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0, 0x54, 0x80, 0x04, 0x08, 52, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 52, 0, 32, 0, 1, 0, 0, 0, 0, 0, 0, 0,
		1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x04, 0x08, 0, 0x80, 0x04, 0x08, 0x60, 0, 0, 0, 0x60, 0, 0, 0, 5, 0, 0, 0, 0, 0x10, 0, 0,
	}
	every(t, func(t *testing.T, l Level) {
		s := folders(t, l, "")
		path := filepath.Join(s.Task, "program")
		err := errors.Join(executable.Write(path, append(header, code...), 0o755), os.Chmod(path, 0o755))
		if err != nil {
			t.Fatal(err)
		}
		s.Argv = []string{"./program"}
		_, err = output(t, s)
		var exit *ExitError
		want := 128 + int(unix.SIGSYS)
		if l == None {
			want = 42
		}
		if !errors.As(err, &exit) || exit.Code != want {
			t.Errorf("%v, want code %d: a kernel without programs of 32 bits cannot run this test", err, want)
		}
	})
}
