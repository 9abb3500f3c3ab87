package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"yardmaster/internal/cli/capability"
	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/client"
)

// statusPart is a part of the status: rows of a noun, under a heading. The dashboard's home shows the same.
type statusPart struct {
	name, title string
	of          *noun.Noun
	in          []capability.Given
	lists       string // the command that lists them all
	then        string // the command that deals with them
	// thenFor, if set, is then for the rows that there are.
	thenFor func(rows []any) string
	// keep, if set, tells which rows are meant where the list cannot be asked for them alone.
	keep func(row map[string]any) bool
}

// looked is the number of rows that are read of a list, to tell how many there are.
const looked = 100

// statusRows are the rows of a part.
type statusRows struct {
	rows []json.RawMessage
	more bool // whether the list goes on after what was read of it
}

// readers read the rows of parts. Parts of the same list read it once.
func readers(ctx context.Context, c *client.Client, parts []statusPart) (read []func() (statusRows, error)) {
	lists := map[string]func() (statusRows, error){}
	for _, p := range parts {
		key := fmt.Sprint(p.of.Name, p.in)
		if lists[key] == nil {
			lists[key] = sync.OnceValues(func() (of statusRows, err error) {
				of.rows, of.more, err = p.of.Rows(ctx, c, p.in, looked)
				return of, err
			})
		}
		read = append(read, func() (statusRows, error) {
			of, err := lists[key]()
			of.rows = p.meant(of.rows)
			return of, err
		})
	}
	return read
}

// meant are those of the rows of a list that are meant.
func (p statusPart) meant(rows []json.RawMessage) (some []json.RawMessage) {
	for _, r := range rows {
		if p.keep != nil {
			if v, err := object.Decode(r); err != nil || !p.keep(object.Map(v)) {
				continue
			}
		}
		some = append(some, r)
	}
	return some
}

// statusParts are all parts, in the order in which a person deals with them. What waits for a person comes
// first, then what runs, what went wrong, and why tasks wait.
func statusParts() []statusPart {
	only := func(words ...string) (in []capability.Given) {
		for _, w := range words {
			in = append(in, capability.Given{Name: "filter", Text: w})
		}
		return in
	}
	task, pulls := noun.Called("task"), noun.Called("pr").Wide()
	return []statusPart{
		{name: "approvals", title: "waits for your yes or no", of: noun.Called("question"), lists: "yardmaster pr list --waiting",
			then: "yardmaster pr approve ID"},
		{name: "blockers", title: "waits for what you can give", of: noun.Called("blocker"), lists: "yardmaster blocker list",
			thenFor: resolving},
		{name: "escalations", title: "was handed to people", of: noun.Called("escalation"), in: only("state:open"),
			lists: "yardmaster escalation list --state open", then: "yardmaster escalation resolve ID"},
		{name: "held_plans", title: "plans to release", of: noun.Called("plan"), in: []capability.Given{{Name: "bucket", Text: "held"}},
			lists: "yardmaster plan list --bucket held", then: "yardmaster plan approve ID"},
		{name: "pulls", title: "pull requests that wait for a person", of: pulls, in: only("waits:person"), keep: waitsForPerson,
			lists: "yardmaster pr list --waits person", then: "yardmaster pr view ID says what moves it"},
		{name: "held", title: "tasks that wait for a person", of: task, in: only("status:held"), keep: isHeld,
			lists: "yardmaster task list --status held", then: "yardmaster task view ID says what moves it"},
		{name: "running", title: "runs now", of: task, in: only("status:running,claimed"),
			lists: "yardmaster task list --status running,claimed", then: "yardmaster task watch ID"},
		{name: "offline_boxes", title: "boxes that are gone", of: noun.Called("box"), in: only("state:enrolled", "presence:offline"),
			keep: wasHere, lists: "yardmaster box list --presence offline", then: "yardmaster box view ID; it takes work when it is back"},
		{name: "dead_webhooks", title: "webhooks to which nothing is sent any more", of: noun.Called("webhook"), keep: isDead,
			lists: "yardmaster webhook list", then: "yardmaster webhook revive ID"},
		{name: "spent_pulls", title: "pull requests whose repair is spent", of: pulls, in: only("waits:person"), keep: isSpent,
			lists: "yardmaster pr list --waits person", then: `yardmaster pr rearm ID "…"`},
		{name: "stuck", title: "is stuck", of: task, in: only("stuck:true"),
			keep:  func(row map[string]any) bool { return row["status"] != "failed" },
			lists: "yardmaster task list --stuck", then: "yardmaster task view ID says what moves it"},
		{name: "failed", title: "went wrong in the last 24 h", of: task, in: only("status:failed", "finished:24h"),
			lists: "yardmaster task list --status failed --finished 24h", thenFor: retrying},
		{name: "waiting", title: "why tasks wait", of: noun.Called("stall"), lists: "yardmaster task stalls",
			then: "yardmaster task stalls"},
	}
}

// needOf is why only a person gets an open pull request on; "" if that is not so.
func needOf(row map[string]any) string {
	if row["state"] != "open" {
		return ""
	}
	return object.Text(object.Map(row["needs_person"])["why"])
}

func isSpent(row map[string]any) bool { return needOf(row) == "spent" }

// waitsForPerson leaves out what another part has: questions, and what is spent.
func waitsForPerson(row map[string]any) bool {
	return !slices.Contains([]string{"", "asked", "push_asked", "spent"}, needOf(row))
}

// isHeld leaves out tasks that wait for the answer to a blocker, which has a part of its own.
func isHeld(row map[string]any) bool {
	holds, _ := row["holds"].([]any)
	return !slices.ContainsFunc(holds, func(h any) bool {
		return strings.HasPrefix(object.Text(object.Map(object.Map(h)["clear"])["capability"]), "blocker.")
	})
}

// wasHere tells a box that is gone from one that was enrolled and has not come yet.
func wasHere(row map[string]any) bool { return object.Map(row["presence"])["last_beat"] != nil }

func isDead(row map[string]any) bool { return row["healthy"] == false }

// resolving is the command that deals with blockers: a form is filled in, and any other is a
// question.
func resolving(rows []any) string {
	const fill, answer = "yardmaster blocker fill ID", `yardmaster blocker answer ID "…"`
	return either(rows, func(row map[string]any) bool { return row["form"] != nil }, fill, answer,
		fill+" for a form, "+answer+" for a question")
}

// retrying is the command that deals with failed tasks. One that depends on another is not tried again
// before that one is.
func retrying(rows []any) string {
	const again, view = "yardmaster task redispatch ID", "yardmaster task view ID says which task it depends on"
	return either(rows, func(row map[string]any) bool { return row["failure_kind"] == noun.DependencyFailed }, view, again,
		again+"; of one whose dependency failed, "+view)
}

// either is what is said if all rows are like that, none is, or some are.
func either(rows []any, is func(row map[string]any) bool, all, none, some string) string {
	n := 0
	for _, row := range rows {
		if is(object.Map(row)) {
			n++
		}
	}
	switch n {
	case len(rows):
		return all
	case 0:
		return none
	}
	return some
}

// withoutDoubles leaves out what another part tells of: stuck tasks that are held, and what is about a pull
// request that waits for a person itself.
func withoutDoubles(some []json.RawMessage, others ...[]json.RawMessage) []json.RawMessage {
	told := map[string]bool{}
	for _, rows := range others {
		for _, r := range rows {
			v, _ := object.Decode(r)
			told[object.Text(object.Map(v)["id"])] = true
		}
	}
	return slices.DeleteFunc(some, func(r json.RawMessage) bool {
		v, _ := object.Decode(r)
		pr := object.Text(object.Map(v)["pr_id"])
		return told[object.Text(object.Map(v)["id"])] || pr != "" && told[pr]
	})
}

// statusMembers are the members of the status in JSON. It is asked for with every command line, so it makes no
// nouns: TestStatusMembers holds it against the parts.
func statusMembers() []string {
	return []string{"approvals", "blockers", "escalations", "held_plans", "pulls", "held", "running", "offline_boxes", "dead_webhooks",
		"spent_pulls", "stuck", "failed", "waiting", "counts", "spending", "unread", "needs", "more", "at_least", "first_steps"}
}

// more says how many rows there are besides those that are shown, or at least are, and what lists them.
func (p statusPart) more(n int, orMore bool) string {
	if orMore {
		return fmt.Sprintf("%d or more besides: %s", n, p.lists)
	}
	return fmt.Sprintf("%d more: %s", n, p.lists)
}

// notShown says which parts the token may not read, and the scopes that it takes; "" if it may read all.
func notShown(all map[string]any) string {
	unread, _ := all["unread"].([]any)
	var parts []string
	for _, part := range unread {
		name := object.Text(part)
		text := strings.ReplaceAll(name, "_", " ")
		if scopes := object.Text(object.Map(all["needs"])[name]); scopes != "" {
			text += " (needs " + scopes + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return client.Inert("Not shown: " + strings.Join(parts, ", "))
}
