package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrEmpty is the error of a text that has nothing in it.
var ErrEmpty = errors.New("the text is empty")

// Edit has a person write a text in the editor of VISUAL or EDITOR, else vi. Lines of the
// help, which stands below the text with # before each line, are left out of the answer.
// Edit fails with ErrEmpty if nothing is left.
func Edit(ctx context.Context, env func(string) string, begin, help string) (string, error) {
	dir, err := os.MkdirTemp("", "yardmaster-edit-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "TEXT.md")
	const mark = "# ------ what follows this line is not part of the text ------"
	text := begin + "\n\n" + mark + "\n"
	for line := range strings.Lines(help) {
		text += "# " + strings.TrimRight(line, "\n") + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	editor := env("VISUAL")
	if editor == "" {
		editor = env("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	// The variable may hold arguments, as git and others take it.
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run the editor %s: %w", editor, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	written, _, _ := strings.Cut(string(b), mark)
	if written = strings.TrimSpace(written); written == "" {
		return "", ErrEmpty
	}
	return written, nil
}

// largest is the size of a text from a file or standard input, in bytes.
const largest = 8 << 20

// Read is the text of a file, or of standard input for "-". More than 8 MiB are refused.
func Read(path string) ([]byte, error) {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, largest+1))
	if err == nil && len(b) > largest {
		err = fmt.Errorf("%s has more than %d bytes", path, largest)
	}
	return b, err
}
