package command

import (
	"context"
	"errors"
	"slices"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
)

// sayAtHost answers a command.
var sayAtHost = intent.Declare[sayArgs, codehost.Comment]("command.answer", false)

type sayArgs struct {
	Number  int64
	Comment string // id of the comment that is answered
	OnLines bool   // it is in a thread about lines
	Text    string
}

// sayer carries out command.answer.
type sayer struct{}

// Still implements intent.Handler.
func (sayer) Still(_ *db.Tx, c intent.Call[sayArgs]) (bool, error) { return c.Repo.Enabled, nil }

// Do implements intent.Handler. The answer to a comment on lines goes into its thread; if
// that is gone, into the conversation.
func (sayer) Do(ctx context.Context, f codehost.Forge, c intent.Call[sayArgs]) (codehost.Comment, error) {
	at := c.Repo.HostRepo()
	if c.Args.OnLines {
		threads, err := f.Threads(ctx, at, c.Args.Number)
		if err != nil {
			return codehost.Comment{}, err
		}
		i := slices.IndexFunc(threads, func(t codehost.Thread) bool {
			return slices.ContainsFunc(t.Comments, func(said codehost.Comment) bool { return said.ID == c.Args.Comment })
		})
		if i >= 0 {
			said, err := f.Reply(ctx, at, c.ID, c.Args.Number, threads[i].ID, c.Args.Text)
			if !errors.Is(err, codehost.ErrThreadGone) {
				return said, err
			}
		}
	}
	return f.AddComment(ctx, at, c.ID, c.Args.Number, c.Args.Text)
}

// Done implements intent.Handler.
func (sayer) Done(*db.Tx, intent.Call[sayArgs], codehost.Comment, error) error { return nil }
