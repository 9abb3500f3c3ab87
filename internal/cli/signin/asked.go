package signin

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/terminal"
)

// Ask prompts on a terminal, without echo if secret. It ends with ctx, although
// reading a terminal cannot be cancelled.
func Ask(ctx context.Context, prompt string, secret bool) (string, error) {
	in := int(os.Stdin.Fd())
	before, err := term.GetState(in)
	onTerminal := err == nil
	if onTerminal && secret {
		// ReadPassword would turn the echo off only after the prompt has asked.
		if err := terminal.Mute(in); err != nil {
			return "", err
		}
		defer func() { _ = term.Restore(in, before) }()
	}
	if onTerminal {
		fmt.Fprint(os.Stderr, prompt+": ")
	}
	type answer struct {
		text string
		err  error
	}
	given := make(chan answer, 1)
	go func() {
		if secret && onTerminal {
			b, err := term.ReadPassword(in)
			given <- answer{string(b), err}
			return
		}
		text, err := bufio.NewReader(os.Stdin).ReadString('\n')
		given <- answer{strings.TrimRight(text, "\r\n"), err}
	}()
	select {
	case a := <-given:
		if secret && onTerminal {
			_ = term.Restore(in, before)
			fmt.Fprintln(os.Stderr)
			return a.text, a.err
		}
		if a.text == "" && a.err != nil {
			return "", exit.Misused("%s is read from standard input, which is empty", strings.ToLower(prompt))
		}
		return a.text, nil
	case <-ctx.Done():
		if onTerminal {
			_ = term.Restore(in, before) // turns the echo on again
			fmt.Fprintln(os.Stderr)
		}
		return "", ctx.Err()
	}
}

// Choose asks for a new password, twice if twice is set: where a person types it
// unseen.
func Choose(twice bool, ask func(prompt string) (string, error)) (string, error) {
	password, err := ask(fmt.Sprintf("Password, at least %d characters", leastPassword))
	if err != nil {
		return "", err
	}
	if utf8.RuneCountInString(password) < leastPassword {
		return "", exit.Misused("the password has fewer than %d characters", leastPassword)
	}
	if !twice {
		return password, nil
	}
	again, err := ask("The same again")
	if err == nil && again != password {
		err = exit.Misuse("the two passwords are not the same")
	}
	return password, err
}

// leastPassword is the least number of characters that the server accepts.
const leastPassword = 10
