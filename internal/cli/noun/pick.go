package noun

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/terminal"
)

// Pick has a person choose an object from a list: of those that fit, if that is given. repo
// narrows the list of what belongs to a repository.
func (n *Noun) Pick(ctx context.Context, prompt, repo string, fits func(map[string]any) bool) (string, error) {
	row, err := n.Choose(ctx, prompt, repo, nil, fits)
	return n.ID(row), err
}

// PickFor has a person choose an object with which the command of the words can do something.
func (n *Noun) PickFor(ctx context.Context, words, repo string) (string, error) {
	return n.Pick(ctx, "yardmaster "+words, repo, fitting(words))
}

// Kind is the noun as the kind of the arguments of a command; none if there is no noun.
func (n *Noun) Kind() tree.Kind {
	if n == nil {
		return nil
	}
	return n
}

// Choose is pick that answers the whole object. in are inputs of the list besides.
func (n *Noun) Choose(
	ctx context.Context, prompt, repo string, in []capability.Given, fits func(map[string]any) bool,
) (map[string]any, error) {
	c, err := signin.Connect()
	if err != nil {
		return nil, err
	}
	of := n
	switch {
	case !n.PerRepo:
	case repo != "":
		if in, err = InRepo(ctx, repo, in); err != nil {
			return nil, err
		}
	case len(n.within(ctx)) > 0:
		in = append(in, n.within(ctx)...)
	case n.Everywhere != "":
		of = n.Wide()
	default: // first whose
		if repo, err = Called("repo").Pick(ctx, prompt+": which repository?", "", nil); err != nil {
			return nil, err
		}
		if in, err = InRepo(ctx, repo, in); err != nil {
			return nil, err
		}
	}
	most := 100
	if fits != nil {
		most = Searched
	}
	all, _, err := of.Rows(ctx, c, in, most)
	if err != nil {
		return nil, err
	}
	var rows []map[string]any
	for _, r := range all {
		v, err := object.Decode(r)
		if row, ok := v.(map[string]any); err == nil && ok && (fits == nil || fits(row)) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		what := "there is no " + n.Name + " to choose"
		if len(all) > 0 {
			what = "there is no " + n.Name + " with which that can be done"
		}
		return nil, exit.Misused("%s is missing, and %s", n.called(), what)
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = of.line(row)
	}
	i, err := terminal.Pick(ctx, os.Getenv, prompt, lines)
	if errors.Is(err, terminal.ErrInterrupted) {
		return nil, err
	}
	if err != nil {
		return nil, exit.Misuse(err.Error())
	}
	return rows[i], nil
}

// called is the word for the name of an object in a command line.
func (n *Noun) called() string {
	switch {
	case n.Name == "repo":
		return "OWNER/NAME"
	case n.Key == "name":
		return "NAME"
	}
	return "ID"
}

// line is an object in a line.
func (n *Noun) line(row map[string]any) string {
	words := []string{object.Short(n.ID(row))}
	if number := object.Text(row["number"]); number != "" {
		words = append(words, object.Text(row["repo"])+"#"+number)
	}
	for _, at := range []string{"status", "state", "outcome", "repo", "name", n.Label, "title"} {
		text := object.Text(row[at])
		if text != "" && !slices.Contains(words, text) && !(at == "repo" && row["number"] != nil) {
			words = append(words, text)
		}
	}
	for _, at := range []string{"created_at", "started_at", "updated_at"} {
		if t, err := time.Parse(time.RFC3339Nano, object.Text(row[at])); err == nil {
			words = append(words, terminal.Age(time.Now(), t))
			break
		}
	}
	return strings.Join(words, "  ")
}

// What can be done with an object, by its members.

func isOpen(row map[string]any) bool { return row["state"] == "open" || row["state"] == "opening" }

// IsUnder tells of an object whether a member has one of the values.
func IsUnder(member string, values ...any) func(map[string]any) bool {
	return func(row map[string]any) bool { return slices.Contains(values, row[member]) }
}

// IsNotUnder tells of an object whether a member has none of the values.
func IsNotUnder(member string, values ...any) func(map[string]any) bool {
	return func(row map[string]any) bool { return !slices.Contains(values, row[member]) }
}

// fitting are the objects with which a command can do something; those of others are all.
func fitting(words string) func(map[string]any) bool {
	over := []any{"completed", "merged", "cancelled", "failed"}
	switch words {
	case "task cancel":
		return IsNotUnder("status", over...)
	case "task reassign":
		return IsUnder("status", "claimed", "running")
	case "task redispatch":
		return func(row map[string]any) bool {
			return row["status"] == "failed" || row["status"] == "held" || row["status"] == "cancelled" || row["stuck"] == true
		}
	case "task retry":
		return IsUnder("status", "pending")
	case "task report":
		return IsUnder("status", "completed", "merged", "awaiting_ci", "awaiting_review", "mergeable")
	case "escalation resolve":
		return IsUnder("resolved_at", nil)
	case "pr merge", "pr ask-again", "pr rearm", "pr review", "pr checkout":
		return isOpen
	case "schedule pause":
		return IsNotUnder("state", "paused")
	case "schedule resume":
		return IsUnder("state", "paused")
	case "token revoke", "token rename":
		return IsUnder("revoked", false)
	case "invitation revoke":
		return IsUnder("status", "pending")
	case "plan approve":
		return IsUnder("status", "held")
	case "plan cancel":
		return IsNotUnder("status", "cancelled", "completed", "done", "merged")
	case "webhook revive":
		return IsUnder("healthy", false)
	case "notification read":
		return IsUnder("read_at", nil)
	case "notification archive":
		return IsUnder("archived_at", nil)
	case "check log":
		return IsUnder("status", "passed", "failed")
	case "ask redrive", "ask approve":
		return IsUnder("state", "escalated")
	case "box resume":
		return IsUnder("state", "draining", "drained")
	case "box drain":
		return IsUnder("state", "enrolled")
	}
	return nil
}
