package screen

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/term"

	"yardmaster/internal/terminal"
)

// NoPager is the value of --no-pager.
var NoPager bool

// beforePager is what standard output was as a screen, while a pager takes it; else nil.
var beforePager *terminal.Screen

// pagerCommand is the command line of the program that shows long texts page by page: that of
// PAGER, or less. "" is none.
func pagerCommand() string {
	if NoPager || os.Getenv("NO_PAGER") != "" || !Out().Live || beforePager != nil || !term.IsTerminal(int(os.Stdin.Fd())) {
		return ""
	}
	if of, set := os.LookupEnv("PAGER"); set {
		if of = strings.TrimSpace(of); of == "cat" {
			return ""
		}
		return of
	}
	if _, err := exec.LookPath("less"); err == nil {
		return "less -FRX"
	}
	return ""
}

// Paged writes a text to standard output: on a terminal that is lower, page by page.
func Paged(text string) error {
	_, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || strings.Count(text, "\n") < height {
		_, err := io.WriteString(os.Stdout, text)
		return err
	}
	return Paging(func() error {
		_, err := io.WriteString(os.Stdout, text)
		return err
	})
}

// Paging has a pager show what do writes to standard output, if there is a terminal and a
// pager. Somebody may leave the pager before all is written: that is no failure.
func Paging(do func() error) error {
	line := pagerCommand()
	if line == "" {
		return do()
	}
	r, w, err := os.Pipe()
	if err != nil {
		return do()
	}
	s, stdout := Out(), os.Stdout
	cmd := exec.Command("sh", "-c", line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		_, _ = r.Close(), w.Close()
		return do()
	}
	_ = r.Close()
	os.Stdout, beforePager = w, &s
	defer func() { os.Stdout, beforePager = stdout, nil }()
	err = do()
	_ = w.Close()
	_ = cmd.Wait()
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
