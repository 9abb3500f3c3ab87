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
// Edit fails with ErrEmpty if nothing is left. The text is also in the file at path, until the
// caller calls Forget; after an error path is "", or the file of what an editor that failed has left.
func Edit(ctx context.Context, env func(string) string, begin, help string) (text, path string, err error) {
	dir, err := os.MkdirTemp("", "yardmaster-edit-")
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(dir, "TEXT.md")
	ran := edit(ctx, env, path, begin, help)
	b, err := os.ReadFile(path)
	written, _, _ := strings.Cut(string(b), mark)
	written = strings.TrimSpace(written)
	switch {
	case ran != nil && (written == "" || written == strings.TrimSpace(begin)):
		err = ran
	case err == nil && written == "":
		err = ErrEmpty
	case err == nil:
		if err = os.WriteFile(path, []byte(written+"\n"), 0o600); ran != nil {
			return "", path, ran
		}
	}
	if err != nil {
		Forget(path)
		return "", "", err
	}
	return written, path, nil
}

// mark ends the text in the file of an editor.
const mark = "# ------ what follows this line is not part of the text ------"

// edit runs the editor on a file that begins with a text.
func edit(ctx context.Context, env func(string) string, path, begin, help string) error {
	text := begin + "\n\n" + mark + "\n"
	for line := range strings.Lines(help) {
		text += "# " + strings.TrimRight(line, "\n") + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
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
		return fmt.Errorf("run the editor %s: %w", editor, err)
	}
	return nil
}

// Forget removes the file of a text that was accepted.
func Forget(path string) { _ = os.RemoveAll(filepath.Dir(path)) }

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
