package noun

import (
	"cmp"
	"fmt"
	"strings"

	"yardmaster/internal/cli/change"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/client"
)

func askNoun() *Noun {
	return &Noun{Name: "ask", List: "ask.list", Get: "ask.get", Label: "title", Page: "asks", First: `yardmaster ask file "…"`,
		Hidden: []string{"askId", "hold.clear"},
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"AGE", "created_at", table.Age},
			{"VERDICT", "verdict.kind", table.Text}, {"REPOSITORY", "repo", table.Text}, {"SOURCE", "source", table.Text},
			{"TITLE", "title", table.Title}}}
}

func blockerNoun() *Noun {
	return &Noun{Name: "blocker", List: "blocker.list", Get: "blocker.get", Query: "open=true", Label: "question", Page: "blockers",
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"KIND", "kind", table.State},
			{"AGE", "created_at", table.Age}, {"REPOSITORY", "repo", table.Text}, {"QUESTION", "question", table.Title}},
		Next: func(row map[string]any) []string {
			if row["state"] != "open" {
				return nil
			}
			id := client.Word(object.Short(object.Text(row["id"])))
			if row["form"] != nil {
				return []string{"Fill it in with: yardmaster blocker fill " + id}
			}
			return []string{`Answer with: yardmaster blocker answer ` + id + ` "…"`}
		}}
}

// keyNoun are the model keys of the account.
func keyNoun() *Noun {
	return &Noun{Name: "key", List: "billing.keys_list", Names: []string{"label", "masked"}, Label: "label",
		Page: "settings/keys", Alone: true,
		First: "yardmaster key add --provider NAME",
		Columns: []table.Column{{"ID", "id", table.ID}, {"PROVIDER", "provider", table.Text}, {"LABEL", "label", table.Title},
			{"KEY", "masked", table.Text}, {"KIND", "kind", table.Text}, {"STATUS", "status", table.State},
			{"PRIORITY", "priority", table.Number}, {"VERIFIED", "last_verified_at", table.Age},
			{"ERROR", "last_error", table.Title}}}
}

func boxNoun() *Noun {
	return &Noun{Name: "box", List: "box.list", Get: "box.get", Names: []string{"name"}, Label: "name", Page: "boxes",
		First: "yardmaster box join",
		Columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Title}, {"STATE", "state", table.State},
			{"PRESENCE", "presence.status", table.State}, {"HEARD", "presence.last_beat", table.Age},
			{"BUSY", "presence.active", table.Number}, {"SLOTS", "slots", table.Number},
			{"VERSION", "presence.version", table.Text}}}
}

func repoNoun() *Noun {
	return &Noun{Name: "repo", List: "project.list", Get: "project.get", Key: "full_name", Label: "full_name",
		Page: "repos", First: "yardmaster repo add PATH",
		Columns: []table.Column{{"REPOSITORY", "full_name", table.Title}, {"BRANCH", "default_branch", table.Text},
			{"ENABLED", "enabled", table.Text}, {"HOST", "host", table.Text}, {"POLICY VALID", "policy_valid", table.Text},
			{"ACTIVE", "last_activity_at", table.Age}}}
}

func planNoun() *Noun {
	return &Noun{Name: "plan", List: "plan.list", Get: "plan.get", Label: "title", Page: "plans",
		First: "yardmaster plan file DIR --repo OWNER/NAME",
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"BUCKET", "bucket", table.State},
			{"MERGED", "merged", table.Number}, {"OF", "total", table.Number}, {"REPOSITORY", "repo", table.Text},
			{"ACTIVE", "last_activity_at", table.Age}, {"TITLE", "title", table.Title}},
		Hidden: []string{"planId", "created_by", "requested_by"},
		Plain:  plainPlan,
		Tables: map[string][]string{"groups": {"slug", "status", "title", "waits_for", "tasks", "files"}},
		Next: func(row map[string]any) []string {
			id := client.Word(object.Short(object.Text(row["id"])))
			if row["status"] == "held" {
				return []string{"Read what it starts with: yardmaster plan read " + id,
					"Release it with: yardmaster plan approve " + id + ", or yardmaster plan cancel " + id}
			}
			return nil
		}}
}

func pullNoun() *Noun {
	return &Noun{Name: "pr", List: "pr.list", Get: "pr.get", Names: []string{"head_ref"}, Label: "title", Page: "prs", PerRepo: true,
		Everywhere: "pr.all", Show: change.View,
		Columns: []table.Column{{"NUMBER", "number", table.Number}, {"STATE", "state", table.State},
			{"AGE", "created_at", table.Age}, {"CHECKS", "checks", table.State},
			{"WAITS FOR", "needs_person|pending_action|queue|babysit", table.Wait},
			{"REVIEW", "review.verdict|review.state", table.Reviewed}, {"LINES", "size", table.Size},
			{"BRANCH", "head_ref", table.ExtraTitle}, {"TITLE", "title", table.Title}, {"ID", "id", table.ID}}}
}

// questionNoun are the pull requests about which a question waits.
func questionNoun() *Noun {
	return &Noun{Name: "question", List: "pr.pending_approvals", Key: "pr_id", Label: "title",
		None: "Nothing waits for a yes or no. What waits for something else says so in `yardmaster task list`.",
		Columns: []table.Column{{"ID", "pr_id", table.ID}, {"PULL REQUEST", "repo", table.Pull}, {"ASKED", "kind", table.Text},
			{"HEAD", "head_sha", table.SHA}, {"CHECKS", "checks", table.State},
			{"REVIEW", "review.verdict|review.state", table.Reviewed}, {"LINES", "size", table.Size},
			{"AGE", "requested_at", table.Age}, {"TITLE", "title", table.Title}}}
}

func taskNoun() *Noun {
	return &Noun{Name: "task", List: "task.list", Get: "task.run_status", Names: []string{"branch"}, Label: "title", Page: "tasks",
		First:  `yardmaster task create --repo OWNER/NAME "…"`,
		Hidden: []string{"sink", "queue_depth_cap", "run_id", "base_sha", "created_by", "pr_id", "holds", "run.last_seq"},
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"AGE", "created_at", table.Age},
			{"WAITS FOR", "holds", table.Holds}, {"COST", "budget.spent", table.Cost}, {"REPOSITORY", "repo", table.Text},
			{"KIND", "kind", table.Text}, {"TRY", "attempt", table.ExtraCount}, {"PLACE", "queue_position", table.ExtraCount},
			{"BOX", "box_id", table.Extra}, {"TITLE", "title", table.Title}},
		Next: func(row map[string]any) (lines []string) {
			id := client.Word(object.Short(object.Text(row["id"])))
			holds, _ := row["holds"].([]any)
			for _, h := range holds {
				hold, _ := h.(map[string]any)
				// The call is the next line, as a command.
				clear := object.Clear(hold["clear"])
				until := clear.Plain(object.Text(hold["clears_when"]))
				lines = append(lines, fmt.Sprintf("It waits %s, until %s.", client.Reason(object.Text(hold["reason"])), until))
				if command := clear.Command(); command != "" {
					lines = append(lines, "What moves it: "+command)
				}
			}
			switch row["status"] {
			case "pending", "claimed", "running", "awaiting_ci", "fixing_ci":
				lines = append(lines, "Follow it with: yardmaster task watch "+id)
				if row["status"] == "running" && row["stuck"] == true {
					lines = append(lines, onwards(row)...)
				}
			case "failed":
				lines = append(lines, onwards(row)...)
			case "cancelled":
				lines = append(lines, "It is over for good. "+another(row, object.Short(object.Text(row["id"]))))
			case "completed", "merged":
				lines = append(lines, "What it delivered: yardmaster task report "+id)
			}
			if pr := object.Text(row["pr_id"]); pr != "" {
				lines = append(lines, "Its pull request: yardmaster pr view "+client.Word(pr))
			}
			return lines
		}}
}

// plainPlan puts the names of groups in the place of their ids.
func plainPlan(row map[string]any) {
	groups, _ := row["groups"].([]any)
	names := map[string]string{}
	for _, g := range groups {
		group := object.Map(g)
		names[object.Text(group["id"])] = object.Text(group["slug"])
	}
	for _, g := range groups {
		group := object.Map(g)
		var after []any
		waits, _ := group["upstream"].([]any)
		for _, w := range waits {
			name := cmp.Or(names[object.Text(object.Map(w)["group_id"])], object.Text(object.Map(w)["group_id"]))
			if object.Map(w)["kind"] == "ordering_only" {
				name += " (order only)"
			}
			after = append(after, name)
		}
		tasks, _ := group["tasks"].([]any)
		for i, t := range tasks {
			if task := object.Map(t); task != nil {
				id := cmp.Or(object.Text(task["id"]), object.Text(task["task_id"]))
				tasks[i] = strings.TrimSpace(object.Short(id) + " " + strings.ReplaceAll(object.Text(task["status"]), "_", " "))
			}
		}
		delete(group, "upstream")
		delete(group, "plan_id")
		group["waits_for"] = after
	}
}

// donationNoun is what the account gave.
func donationNoun() *Noun {
	return &Noun{Name: "donation", List: "donation.list", Label: "kind", Alone: true,
		First: "yardmaster donation give --kind llm --target pool --key-id KEY",
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"KIND", "kind", table.Text},
			{"REPOSITORY", "target_repo_full_name", table.Title}, {"SERVES", "serves", table.Text}, {"USED", "used_usd", table.Number},
			{"LEFT", "left_usd", table.Number}, {"CALLS", "calls", table.Number}, {"AGE", "created_at", table.Age}}}
}
