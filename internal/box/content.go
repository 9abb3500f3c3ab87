package box

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"yardmaster/internal/box/worktree"
	"yardmaster/internal/protocol"
)

// complete brings into a fresh checkout what the repository has elsewhere, and notes what
// cannot be had.
func (b *box) complete(ctx context.Context, a *attempt, w *workspace) error {
	w.lacks = nil
	if a.start.Depth > 0 {
		if err := w.checkout.Shorten(ctx, a.start.Depth); err != nil {
			return err
		}
	}
	if a.start.LFS {
		w.checkout.LFS = true
		if err := b.insist(ctx, a, func() error {
			lacking, err := w.checkout.FillObjects(ctx, a.remote())
			w.lack(lacking, pointerOf)
			return err
		}); err != nil {
			return err
		}
	}
	if a.start.Submodules == nil {
		return nil
	}
	return b.addModules(ctx, a, w)
}

// pointerOf begins the reason why a file is not what it stands for.
const pointerOf = "a pointer of Git LFS: "

// remote is the attempt's repository as the place of its objects of Git LFS.
func (a *attempt) remote() worktree.Remote {
	return worktree.Remote{URL: a.start.CloneURL, Token: a.start.GitToken}
}

func (w *workspace) lack(all []worktree.Skipped, what string) {
	for _, s := range all {
		w.lacks = append(w.lacks, protocol.Lack{Path: shown(s.Path), Reason: shown(what + s.Reason)})
	}
}

// shownBytes is how much of a path or a reason is told.
const shownBytes = 300

// shown is a text of a repository or a host as a line of a brief may have it: in one line, and
// without what would end the code that it stands in.
func shown(s string) string {
	if len(s) > shownBytes {
		s = s[:shownBytes] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '`' || r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

func (w *workspace) prepared() protocol.Prepared {
	first := w.lacks[:min(len(w.lacks), protocol.MaxLacks)]
	return protocol.Prepared{Base: w.Base, Resume: w.Resume, Lacks: first, More: len(w.lacks) - len(first)}
}

// lacked is a line before the output of a command that tells what was not in its checkout;
// "" if all was there.
func (w *workspace) lacked() string {
	if len(w.lacks) == 0 {
		return ""
	}
	l, more := w.lacks[0], ""
	if n := len(w.lacks) - 1; n > 0 {
		more = fmt.Sprintf(", and %d others", n)
	}
	return fmt.Sprintf("Not in the checkout: %.200s (%.300s)%s\n", l.Path, l.Reason, more)
}

// lackNote tells an agent what is not in its checkout; "" if all is there.
func lackNote(lacks []protocol.Lack) string {
	if len(lacks) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## What is not in the checkout\n\nThese could not be had. Do not commit anything in their places; if the work needs one, " +
		"say so.\n\n")
	for _, l := range lacks[:min(len(lacks), protocol.MaxLacks)] {
		fmt.Fprintf(&b, "* `%s`: %s\n", l.Path, l.Reason)
	}
	if n := len(lacks) - protocol.MaxLacks; n > 0 {
		fmt.Fprintf(&b, "* and %d others\n", n)
	}
	return b.String()
}

// pushObjects sends the objects of Git LFS of the work, before its commits.
func (w *workspace) pushObjects(ctx context.Context, a *attempt, tip string) error {
	if !a.start.LFS {
		return nil
	}
	uses, err := w.cache.UsesLFS(ctx, tip)
	if err != nil || !uses {
		return err
	}
	nowhere, err := w.cache.PushObjects(ctx, a.remote(), tip)
	var refused *worktree.ObjectError
	may := errors.Is(err, worktree.ErrBusy) || errors.Is(err, worktree.ErrAuth) || errors.Is(err, worktree.ErrMissing)
	if errors.As(err, &refused) && !may {
		return &worktree.PushError{Rejected: true, Output: refused.Error()}
	}
	if len(nowhere) > 0 {
		a.log.Warn("the work has pointers of Git LFS whose objects nobody has", "objects", nowhere)
	}
	return err
}
