// Package exit says how a command ends: the errors that have a meaning of their own, and which code each exits with, so
// that scripts can tell a misuse from a refusal.
package exit

import (
	"errors"
	"fmt"
	"io/fs"

	"yardmaster/internal/client"
)

// Misuse is an error in the command line: nothing was tried.
type Misuse string

func (m Misuse) Error() string { return string(m) }

// Misused is a Misuse of a text with holes, as of fmt.Sprintf.
func Misused(format string, a ...any) error { return Misuse(fmt.Sprintf(format, a...)) }

// NotFound is the error for a name that nothing has.
type NotFound string

func (n NotFound) Error() string { return string(n) }

// Status is the error of a command that another program has carried out: the exit code of that program, which
// has said why.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit code %d", int(s)) }

// OfFile is what was read of this machine. A file that cannot be had is a misuse: nothing was tried.
func OfFile[T any](what T, err error) (T, error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		err = Misuse(err.Error())
	}
	return what, err
}

// Exit codes besides 0. docs/cli.md documents them.
const (
	CodeFailed      = 1
	CodeMisused     = 2 // nothing was tried
	CodeRefused     = 3 // the server refused: not allowed, or not in this state
	CodeNoAnswer    = 4 // the server did not answer
	CodeNoLogin     = 5 // not signed in, or the token is not good any more
	CodeNotFound    = 6 // there is no such object
	CodeInterrupted = 130
)

// Code is the exit code of an error that is no misuse.
func Code(err error) int {
	var silent *client.Unreachable
	var refusal *client.Problem
	var none NotFound
	var nowhere *client.UnknownContext
	var misspelt client.BadAddress
	var garbled client.BadToken
	switch {
	case errors.As(err, &nowhere), errors.As(err, &misspelt), errors.As(err, &garbled):
		return CodeMisused
	case errors.As(err, &none):
		return CodeNotFound
	case errors.As(err, &silent):
		return CodeNoAnswer
	case errors.Is(err, client.ErrNoLogin):
		return CodeNoLogin
	case errors.As(err, &refusal):
		switch {
		case refusal.Status == 401:
			return CodeNoLogin
		case refusal.Status == 404:
			return CodeNotFound
		case refusal.Status < 500:
			return CodeRefused
		}
	}
	return CodeFailed
}
