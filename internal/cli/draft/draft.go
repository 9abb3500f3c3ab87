// Package draft keeps a text that a person has written in an editor until the server has it.
package draft

import (
	"context"
	"fmt"

	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// Draft is the file of a text that a person has written in an editor. It is there until the server has the text.
type Draft struct{ path string }

type draftKey struct{}

// With is a context for a command that may have a text written.
func With(ctx context.Context) (context.Context, *Draft) {
	d := &Draft{}
	return context.WithValue(ctx, draftKey{}, d), d
}

// Compose has a person write a text in an editor.
func Compose(ctx context.Context, env func(string) string, begin, help string) (string, error) {
	text, path, err := terminal.Edit(ctx, env, begin, help)
	if d, _ := ctx.Value(draftKey{}).(*Draft); d != nil {
		d.path = path
	}
	return text, err
}

// Accepted removes the file of what was written: the server has it.
func Accepted(ctx context.Context) {
	if d, _ := ctx.Value(draftKey{}).(*Draft); d != nil {
		d.forget()
	}
}

// forget removes the file, if there is one.
func (d *Draft) forget() {
	if d.path == "" {
		return
	}
	terminal.Forget(d.path)
	d.path = ""
}

// End removes the file if there is no error, else it has the error tell where the text is.
func (d *Draft) End(err error) error {
	if d.path != "" && err != nil {
		return Unsent{err, d.path}
	}
	d.forget()
	return err
}

// Unsent is the error of a command whose text is in a file.
type Unsent struct {
	error
	path string
}

func (u Unsent) Unwrap() error { return u.error }

// Where says how the text is used again.
func (u Unsent) Where() string {
	return fmt.Sprintf("Your text is in %s; the same command with --file %s takes it.", client.Inert(u.path), client.Word(u.path))
}
