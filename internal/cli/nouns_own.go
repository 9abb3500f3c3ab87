package cli

import (
	"fmt"

	"yardmaster/internal/cli/change"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/client"
)

func askNoun() *noun {
	return &noun{name: "ask", list: "ask.list", get: "ask.get", label: "title", page: "asks", first: `yardmaster ask file "…"`,
		hidden: []string{"askId", "hold.clear"},
		columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"AGE", "created_at", table.Age}, {"VERDICT",
			"verdict.kind", table.Text},
			{"REPOSITORY", "repo", table.Text}, {"SOURCE", "source", table.Text}, {"TITLE", "title", table.Title}}}
}

func blockerNoun() *noun {
	return &noun{name: "blocker", list: "blocker.list", get: "blocker.get", query: "open=true", label: "question", page: "blockers",
		columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"KIND", "kind", table.State}, {"AGE", "created_at", table.Age},
			{"REPOSITORY", "repo", table.Text}, {"QUESTION", "question", table.Title}},
		next: func(row map[string]any) []string {
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
func keyNoun() *noun {
	return &noun{name: "key", list: "billing.keys_list", names: []string{"label", "masked"}, label: "label",
		page: "settings/keys", alone: true,
		first: "yardmaster key add --provider NAME",
		columns: []table.Column{{"ID", "id", table.ID}, {"PROVIDER", "provider", table.Text}, {"LABEL", "label", table.Title}, {"KEY", "masked", table.Text},
			{"KIND", "kind", table.Text}, {"STATUS", "status", table.State}, {"PRIORITY", "priority", table.Number}, {"VERIFIED",
				"last_verified_at", table.Age},
			{"ERROR", "last_error", table.Title}}}
}

func boxNoun() *noun {
	return &noun{name: "box", list: "box.list", get: "box.get", names: []string{"name"}, label: "name", page: "boxes",
		first: "yardmaster box join",
		columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Title}, {"STATE", "state", table.State}, {"PRESENCE",
			"presence.status", table.State},
			{"HEARD", "presence.last_beat", table.Age}, {"BUSY", "presence.active", table.Number}, {"SLOTS", "slots", table.Number},
			{"VERSION", "presence.version", table.Text}}}
}

func repoNoun() *noun {
	return &noun{name: "repo", list: "project.list", get: "project.get", key: "full_name", label: "full_name",
		page: "repos", first: "yardmaster repo add PATH",
		columns: []table.Column{{"REPOSITORY", "full_name", table.Title}, {"BRANCH", "default_branch", table.Text}, {"ENABLED",
			"enabled", table.Text}, {"HOST", "host", table.Text},
			{"POLICY VALID", "policy_valid", table.Text}, {"ACTIVE", "last_activity_at", table.Age}}}
}

func planNoun() *noun {
	return &noun{name: "plan", list: "plan.list", get: "plan.get", label: "title", page: "plans",
		first: "yardmaster plan file DIR --repo OWNER/NAME",
		columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"BUCKET", "bucket", table.State}, {"MERGED", "merged", table.Number},
			{"OF", "total", table.Number}, {"REPOSITORY", "repo", table.Text}, {"ACTIVE", "last_activity_at", table.Age}, {"TITLE", "title", table.Title}},
		hidden: []string{"planId", "created_by", "requested_by"},
		plain:  plainPlan,
		tables: map[string][]string{"groups": {"slug", "status", "title", "waits_for", "tasks", "files"}},
		next: func(row map[string]any) []string {
			id := client.Word(object.Short(object.Text(row["id"])))
			if row["status"] == "held" {
				return []string{"Read what it starts with: yardmaster plan read " + id,
					"Release it with: yardmaster plan approve " + id + ", or yardmaster plan cancel " + id}
			}
			return nil
		}}
}

func pullNoun() *noun {
	return &noun{name: "pr", list: "pr.list", get: "pr.get", names: []string{"head_ref"}, label: "title", page: "prs", perRepo: true,
		everywhere: "pr.all", show: change.View,
		columns: []table.Column{{"NUMBER", "number", table.Number}, {"STATE", "state", table.State}, {"AGE", "created_at", table.Age},
			{"CHECKS", "checks", table.State}, {"WAITS FOR", "needs_person|pending_action|queue|babysit", table.Wait},
			{"REVIEW", "review.verdict|review.state", table.Reviewed}, {"LINES", "size", table.Size},
			{"BRANCH", "head_ref", table.ExtraTitle}, {"TITLE", "title", table.Title}, {"ID", "id", table.ID}}}
}

// questionNoun are the pull requests about which a question waits.
func questionNoun() *noun {
	return &noun{name: "question", list: "pr.pending_approvals", key: "pr_id", label: "title",
		none: "Nothing waits for a yes or no. What waits for something else says so in `yardmaster task list`.",
		columns: []table.Column{{"ID", "pr_id", table.ID}, {"PULL REQUEST", "repo", table.Pull}, {"ASKED", "kind", table.Text}, {"HEAD", "head_sha", table.SHA},
			{"CHECKS", "checks", table.State}, {"REVIEW", "review.verdict|review.state", table.Reviewed}, {"LINES", "size", table.Size},
			{"AGE", "requested_at", table.Age}, {"TITLE", "title", table.Title}}}
}

func taskNoun() *noun {
	return &noun{name: "task", list: "task.list", get: "task.run_status", names: []string{"branch"}, label: "title", page: "tasks",
		first:  `yardmaster task create --repo OWNER/NAME "…"`,
		hidden: []string{"sink", "queue_depth_cap", "run_id", "base_sha", "created_by", "pr_id", "holds", "run.last_seq"},
		columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"AGE", "created_at", table.Age}, {"WAITS FOR", "holds", table.Holds},
			{"COST", "budget.spent", table.Cost}, {"REPOSITORY", "repo", table.Text}, {"KIND", "kind", table.Text},
			{"TRY", "attempt", table.ExtraCount}, {"PLACE", "queue_position", table.ExtraCount}, {"BOX", "box_id", table.Extra},
			{"TITLE", "title", table.Title}},
		next: func(row map[string]any) (lines []string) {
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
