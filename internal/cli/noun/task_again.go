package noun

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/client"
)

// DependencyFailed is the failure of a task that depends on one that did not succeed. The
// server refuses to try it again before that one is.
const DependencyFailed = "dependency_failed"

// mostNeeded is the largest number of tasks that are named of those that a task depends on.
const mostNeeded = 5

// onwards are the commands that go on from a failed task: another try, or what keeps it from one.
func onwards(row map[string]any) (lines []string) {
	if row["failure_kind"] != DependencyFailed {
		return []string{"Try it again with: yardmaster task redispatch " + client.Word(object.Short(object.Text(row["id"])))}
	}
	lines = append(lines, "It depends on a task that did not succeed. If that one failed, a redispatch of it brings both back; "+
		"if it was cancelled, file a task that does not depend on it.")
	needs, _ := row["depends_on"].([]any)
	for _, id := range needs[:min(len(needs), mostNeeded)] {
		lines = append(lines, "It depends on: yardmaster task view "+client.Word(object.Text(id)))
	}
	return lines
}

// another is the command that files a task like one that is over for good. The platform makes
// tasks of some kinds alone: for those it is how people file one.
func another(row map[string]any, id string) string {
	repo, title := client.Word(object.Text(row["repo"])), client.Word(object.Text(row["title"]))
	told := "yardmaster task view " + client.Word(id) + " --jq .problem | "
	switch row["kind"] {
	case "work":
		line := told + "yardmaster task create --repo " + repo + " --title " + title
		if t := object.Text(row["template"]); t != "" && t != "default" {
			line += " --template " + client.Word(t)
		}
		if usd := object.Text(object.Map(row["budget"])["usd"]); usd != "" {
			line += " --budget " + client.Word(usd)
		}
		return "Another like it: " + line + " -"
	case "scout":
		return "Another like it: " + told + "yardmaster call task.create kind=scout repo=" + repo + " title=" + title + " problem=-"
	case "setup":
		return "Another like it: yardmaster repo setup " + repo
	}
	return "A task is filed with: yardmaster task create --repo " + repo + ` "…"`
}

// Cancelled are the lines that follow a cancel: what has become of the pull request, which the
// policy may keep open, and how a task like it is filed, since this one is over for good.
func Cancelled(ctx context.Context, c *client.Client, id string) (lines []string) {
	row := map[string]any{}
	if c.Call(ctx, http.MethodGet, "/v1/tasks/"+url.PathEscape(id), nil, &row) != nil {
		return []string{`It is over for good. A task is filed with: yardmaster task create --repo OWNER/NAME "…"`}
	}
	if pr := object.Text(row["pr_id"]); pr != "" {
		if line := pullAfter(ctx, c, pr); line != "" {
			lines = append(lines, line)
		}
	}
	return append(lines, "It is over for good. "+another(row, id))
}

// pullAfter says what has become of the pull request of a cancelled task; "" if that cannot be read.
func pullAfter(ctx context.Context, c *client.Client, id string) string {
	var pr client.Pull
	if c.Call(ctx, http.MethodGet, "/v1/prs/"+url.PathEscape(id), nil, &pr) != nil {
		return ""
	}
	name := client.Inert(pr.Repo) + "#" + strconv.Itoa(pr.Number)
	switch pr.State {
	case "closed":
		return "Its pull request " + name + " is closed: yardmaster pr view " + client.Word(id)
	case "open":
		return "Its pull request " + name + " is still open: yardmaster pr view " + client.Word(id)
	}
	return "Its pull request " + name + " is " + client.Inert(strings.ReplaceAll(pr.State, "_", " ")) + "."
}
