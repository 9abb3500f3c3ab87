package noun

import (
	"slices"
	"sync"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/client"
)

// All are all kinds of objects that the command line knows.
var All = sync.OnceValue(func() []*Noun {
	return slices.Concat([]*Noun{taskNoun(), pullNoun(), questionNoun(), askNoun(), planNoun(), blockerNoun(),
		repoNoun(), boxNoun(), keyNoun(), donationNoun()},
		otherNouns())
})

// Called is the noun of a name, which there must be.
func Called(name string) *Noun {
	i := slices.IndexFunc(All(), func(n *Noun) bool { return n.Name == name })
	return All()[i]
}

// otherNouns are those about which nothing is special: each is data.
func otherNouns() []*Noun {
	return []*Noun{
		{Name: "escalation", List: "escalation.list", Get: "escalation.get", Label: "title", Page: "escalations",
			Columns: []table.Column{{"ID", "id", table.ID}, {"AGE", "created_at", table.Age},
				{"CATEGORY", "category", table.State}, {"REPOSITORY", "repo", table.Text}, {"TITLE", "title", table.Title},
				{"RESOLVED", "resolved_at", table.Age}, {"BY", "resolved_by", table.Text}},
			Next: func(row map[string]any) []string {
				if row["resolved_at"] != nil {
					return nil
				}
				return []string{"When a person has dealt with it: yardmaster escalation resolve " + client.Word(object.Short(object.Text(row["id"]))) + " NOTE"}
			}},
		{Name: "session", List: "session.list", Get: "session.get", Page: "sessions", Label: "kind",
			Columns: []table.Column{{"ID", "id", table.ID}, {"AGE", "started_at", table.Age}, {"KIND", "kind", table.Text},
				{"OUTCOME", "outcome", table.State}, {"REPOSITORY", "repo", table.Text}, {"MODEL", "model", table.ExtraTitle},
				{"CALLS", "calls", table.ExtraCount}, {"COST", "cost_usd", table.Cost}, {"TITLE", "title", table.Title}}},
		{Name: "artifact", Page: "artifacts", List: "artifact.list", Names: []string{"name"}, Label: "name",
			First: "yardmaster artifact put FILE",
			Columns: []table.Column{{"ID", "id", table.ID}, {"AGE", "created_at", table.Age}, {"NAME", "name", table.Title},
				{"TYPE", "content_type", table.Text}, {"SIZE", "size", table.Number}, {"SEEN BY", "visibility", table.Text},
				{"KEPT UNTIL", "expires_at", table.Age}, {"LINK ENDS", "shared_until", table.Age}}},
		{Name: "board", Page: "boards", List: "dashboard.list", Get: "dashboard.get", Names: []string{"name"}, Label: "name",
			Columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Title}, {"BUILT IN", "builtin", table.Text},
				{"PERSONAL", "personal", table.Text}, {"UPDATED", "updated_at", table.Age}, {"BY", "created_by", table.Text}},
			Plain: plainBoard, Hidden: []string{"layout"},
			Tables: map[string][]string{"widgets": {"title", "shows", "window", "repo", "kind"}}},
		{Name: "secret", Page: "settings/secrets", Alone: true, List: "secret.list", Key: "name", First: "yardmaster secret set NAME",
			None: "The account has none: yardmaster secret set NAME keeps one. " +
				"Those of a repository: yardmaster secret list --repo OWNER/NAME",
			Columns: []table.Column{{"NAME", "name", table.Text}, {"ENVIRONMENT", "environment", table.Text},
				{"DELIVERY", "delivery", table.Text}, {"HOSTS", "hosts", table.Title}, {"VARIABLE", "variable", table.Text},
				{"UPDATED", "updated_at", table.Age}, {"BY", "updated_by", table.Text}}},
		{Name: "repo-secret", List: "project_secret.list", Key: "name", PerRepo: true,
			First: "yardmaster secret set NAME --repo OWNER/NAME",
			Columns: []table.Column{{"NAME", "name", table.Text}, {"ENVIRONMENT", "environment", table.Text},
				{"DELIVERY", "delivery", table.Text}, {"HOSTS", "hosts", table.Title}, {"VARIABLE", "variable", table.Text},
				{"UPDATED", "updated_at", table.Age}, {"BY", "updated_by", table.Text}}},
		{Name: "template", Page: "templates", Alone: true, List: "template.list", Get: "template.get", Key: "name", Label: "name",
			First: "yardmaster template set NAME",
			Columns: []table.Column{{"NAME", "name", table.Text}, {"AGENT", "agent", table.Text},
				{"MODEL", "model", table.Title}, {"PROVIDER", "provider", table.Text}, {"ISOLATION", "isolation", table.Text},
				{"TIMEOUT", "timeout", table.Span}, {"UPDATED", "updated_at", table.Age}},
			Plain: func(row map[string]any) {
				if text := object.Span(row["timeout"]); text != "" {
					row["timeout"] = text
				}
			}},
		{Name: "token", Page: "settings/tokens", Alone: true, List: "token.list", Names: []string{"name", "prefix"}, Label: "name",
			First: "yardmaster token create --name NAME",
			Columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Title}, {"BEGINS WITH", "prefix", table.Text},
				{"REVOKED", "revoked", table.Text}, {"USED", "last_used_at", table.Age}, {"ENDS", "expires_iso", table.Age},
				{"CREATED", "created_at", table.Age}}},
		{Name: "member", Page: "settings/members", Alone: true, List: "member.list", Key: "user_id", Names: []string{"login"},
			Label: "login",
			First: "yardmaster member invite ADDRESS",
			Columns: []table.Column{{"ID", "user_id", table.ID}, {"LOGIN", "login", table.Text}, {"NAME", "name", table.Title},
				{"ROLE", "role", table.Text}, {"JOINED", "joined_at", table.Age}}},
		{Name: "invitation", List: "member.list_invitations", Label: "email",
			Columns: []table.Column{{"ID", "id", table.Text}, {"EMAIL", "email", table.Title}, {"LOGIN", "login", table.Text},
				{"ROLE", "role", table.Text}, {"STATUS", "status", table.State}, {"SENT", "created_at", table.Age},
				{"ENDS", "expires_at", table.Age}}},
		{Name: "schedule", Page: "settings/schedules", Alone: true, List: "schedule.list", Get: "schedule.get",
			Names: []string{"title"}, Label: "title",
			First: `yardmaster schedule create --title … --body … --cron "0 6 * * 1-5"`,
			Columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"CRON", "cron", table.Text},
				{"NEXT", "next_at", table.Age}, {"LAST", "last_at", table.Age}, {"OUTCOME", "last_outcome", table.State},
				{"REPOSITORY", "repo", table.Text}, {"TITLE", "title", table.Title}}},
		{Name: "issue", List: "issue.list", Get: "issue.get", PerRepo: true, Label: "title", Page: "issues",
			Columns: []table.Column{{"NUMBER", "number", table.Number}, {"STATE", "state", table.State},
				{"TRIAGE", "triage", table.State}, {"AGE", "created_at", table.Age}, {"AUTHOR", "author", table.Text},
				{"TITLE", "title", table.Title}, {"ID", "id", table.ID}}},
		{Name: "notification", List: "notification.list", Label: "title", Page: "notifications", Alone: true, Archived: "filter=state:all",
			Columns: []table.Column{{"ID", "id", table.ID}, {"AGE", "updated_at", table.Age}, {"KIND", "kind", table.Text},
				{"READ", "read_at", table.Age}, {"COUNT", "count", table.Number}, {"REPOSITORY", "repo", table.Text},
				{"TITLE", "title", table.Title}}},
		{Name: "webhook", Page: "settings/webhooks", Alone: true, List: "webhook.list", Names: []string{"name"}, Label: "name",
			First: "yardmaster webhook create --name NAME --url ADDRESS",
			Columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Text}, {"FORMAT", "format", table.Text},
				{"HEALTHY", "healthy", table.Text}, {"URL", "url", table.Title}, {"EVENTS", "events", table.Title},
				{"BY", "created_by", table.Text}, {"CREATED", "created_at", table.Age}}},
		{Name: "source", Page: "settings/integrations", List: "integration.list", Get: "integration.get", Names: []string{"name"},
			Label: "name",
			First: "yardmaster source connect --name NAME --kind KIND",
			Columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Text}, {"KIND", "kind", table.Text},
				{"STATE", "state", table.State}, {"REPOSITORY", "repo", table.Text}, {"CREATED", "created_at", table.Age}}},
		{Name: "digest", List: "digest.list", Get: "digest.get", Label: "headline", Hidden: []string{"html", "content"},
			Columns: []table.Column{{"ID", "id", table.ID}, {"PERIOD", "period", table.Text}, {"KIND", "kind", table.Text},
				{"HEADLINE", "headline", table.Title}, {"CREATED", "created_at", table.Age}}},
		{Name: "check", List: "ci.runs", Page: "ci", Alone: true,
			Columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"AGE", "created_at", table.Age},
				{"REPOSITORY", "repo", table.Text}, {"COMMIT", "sha", table.SHA}, {"EXIT", "exit_code", table.Number},
				{"COMMAND", "command", table.Title}}},
		{Name: "audit", Page: "audit", Alone: true, List: "audit.tail",
			Columns: []table.Column{{"SEQ", "seq", table.Number}, {"AGE", "at", table.Age}, {"KIND", "kind", table.Text},
				{"ACTOR", "actor", table.Title}, {"OBJECT", "object", table.Object}}},
		{Name: "stall", List: "task.stalls",
			Columns: []table.Column{{"REASON", "reason", table.State}, {"TASKS", "count", table.Number},
				{"SINCE", "since", table.Age}, {"UNTIL", "clears_when", table.Until}},
			Below: func(row map[string]any) string {
				if command := object.Clear(row["clear"]).Command(); command != "" {
					return "What moves it: " + command
				}
				return ""
			}},
	}
}
