package cli

import (
	"slices"
	"sync"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/client"
)

// nouns are all kinds of objects that the command line knows.
var nouns = sync.OnceValue(func() []*noun {
	return slices.Concat([]*noun{taskNoun(), pullNoun(), questionNoun(), askNoun(), planNoun(), blockerNoun(),
		repoNoun(), boxNoun(), keyNoun()},
		otherNouns())
})

// nounCalled is the noun of a name, which there must be.
func nounCalled(name string) *noun {
	i := slices.IndexFunc(nouns(), func(n *noun) bool { return n.name == name })
	return nouns()[i]
}

// otherNouns are those about which nothing is special: each is data.
func otherNouns() []*noun {
	return []*noun{
		{name: "escalation", list: "escalation.list", get: "escalation.get", label: "title", page: "escalations",
			columns: []table.Column{{"ID", "id", table.ID}, {"AGE", "created_at", table.Age}, {"CATEGORY", "category", table.State},
				{"REPOSITORY", "repo", table.Text},
				{"TITLE", "title", table.Title}, {"RESOLVED", "resolved_at", table.Age}, {"BY", "resolved_by", table.Text}},
			next: func(row map[string]any) []string {
				if row["resolved_at"] != nil {
					return nil
				}
				return []string{"When a person has dealt with it: yardmaster escalation resolve " + client.Word(object.Short(object.Text(row["id"]))) + " NOTE"}
			}},
		{name: "session", list: "session.list", get: "session.get", page: "sessions", label: "kind",
			columns: []table.Column{{"ID", "id", table.ID}, {"AGE", "started_at", table.Age}, {"KIND", "kind", table.Text}, {"OUTCOME", "outcome", table.State},
				{"REPOSITORY", "repo", table.Text}, {"MODEL", "model", table.ExtraTitle}, {"CALLS", "calls", table.ExtraCount},
				{"COST", "cost_usd", table.USD}, {"TITLE", "title", table.Title}}},
		{name: "secret", page: "settings/secrets", alone: true, list: "secret.list", key: "name", first: "yardmaster secret set NAME",
			none: "The account has none: yardmaster secret set NAME keeps one. " +
				"Those of a repository: yardmaster secret list --repo OWNER/NAME",
			columns: []table.Column{{"NAME", "name", table.Text}, {"ENVIRONMENT", "environment", table.Text}, {"DELIVERY", "delivery", table.Text},
				{"HOSTS", "hosts", table.Title}, {"VARIABLE", "variable", table.Text}, {"UPDATED", "updated_at", table.Age},
				{"BY", "updated_by", table.Text}}},
		{name: "repo-secret", list: "project_secret.list", key: "name", perRepo: true,
			first: "yardmaster secret set NAME --repo OWNER/NAME",
			columns: []table.Column{{"NAME", "name", table.Text}, {"ENVIRONMENT", "environment", table.Text}, {"DELIVERY", "delivery", table.Text},
				{"HOSTS", "hosts", table.Title}, {"VARIABLE", "variable", table.Text}, {"UPDATED", "updated_at", table.Age},
				{"BY", "updated_by", table.Text}}},
		{name: "template", page: "templates", alone: true, list: "template.list", get: "template.get", key: "name", label: "name",
			first: "yardmaster template set NAME",
			columns: []table.Column{{"NAME", "name", table.Text}, {"AGENT", "agent", table.Text}, {"MODEL", "model", table.Title},
				{"PROVIDER", "provider", table.Text},
				{"ISOLATION", "isolation", table.Text}, {"TIMEOUT", "timeout", table.Span}, {"UPDATED", "updated_at", table.Age}},
			plain: func(row map[string]any) {
				if text := object.Span(row["timeout"]); text != "" {
					row["timeout"] = text
				}
			}},
		{name: "token", page: "settings/tokens", alone: true, list: "token.list", names: []string{"name", "prefix"}, label: "name",
			first: "yardmaster token create --name NAME",
			columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Title}, {"BEGINS WITH", "prefix", table.Text},
				{"REVOKED", "revoked", table.Text},
				{"USED", "last_used_at", table.Age}, {"ENDS", "expires_iso", table.Age}, {"CREATED", "created_at", table.Age}}},
		{name: "member", page: "settings/members", alone: true, list: "member.list", key: "user_id", names: []string{"login"},
			label: "login",
			first: "yardmaster member invite ADDRESS",
			columns: []table.Column{{"ID", "user_id", table.ID}, {"LOGIN", "login", table.Text}, {"NAME", "name", table.Title}, {"ROLE",
				"role", table.Text}, {"JOINED", "joined_at", table.Age}}},
		{name: "invitation", list: "member.list_invitations", label: "email",
			columns: []table.Column{{"ID", "id", table.Text}, {"EMAIL", "email", table.Title}, {"LOGIN", "login", table.Text},
				{"ROLE", "role", table.Text}, {"STATUS", "status", table.State},
				{"SENT", "created_at", table.Age}, {"ENDS", "expires_at", table.Age}}},
		{name: "schedule", page: "settings/schedules", alone: true, list: "schedule.list", get: "schedule.get",
			names: []string{"title"}, label: "title",
			first: `yardmaster schedule create --title … --body … --cron "0 6 * * 1-5"`,
			columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"CRON", "cron", table.Text}, {"NEXT", "next_at", table.Age},
				{"LAST", "last_at", table.Age}, {"OUTCOME", "last_outcome", table.State}, {"REPOSITORY", "repo", table.Text},
				{"TITLE", "title", table.Title}}},
		{name: "issue", list: "issue.list", get: "issue.get", perRepo: true, label: "title", page: "issues",
			columns: []table.Column{{"NUMBER", "number", table.Number}, {"STATE", "state", table.State}, {"TRIAGE", "triage",
				table.State}, {"AGE", "created_at", table.Age},
				{"AUTHOR", "author", table.Text}, {"TITLE", "title", table.Title}, {"ID", "id", table.ID}}},
		{name: "notification", list: "notification.list", label: "title", page: "notifications", alone: true, archived: "filter=state:all",
			columns: []table.Column{{"ID", "id", table.ID}, {"AGE", "updated_at", table.Age}, {"KIND", "kind", table.Text}, {"READ", "read_at", table.Age},
				{"COUNT", "count", table.Number}, {"REPOSITORY", "repo", table.Text}, {"TITLE", "title", table.Title}}},
		{name: "webhook", page: "settings/webhooks", alone: true, list: "webhook.list", names: []string{"name"}, label: "name",
			first: "yardmaster webhook create --name NAME --url ADDRESS",
			columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Text}, {"FORMAT", "format", table.Text}, {"HEALTHY", "healthy", table.Text},
				{"URL", "url", table.Title}, {"EVENTS", "events", table.Title}, {"BY", "created_by", table.Text}, {"CREATED", "created_at", table.Age}}},
		{name: "source", page: "settings/integrations", list: "integration.list", get: "integration.get", names: []string{"name"},
			label: "name",
			first: "yardmaster source connect --name NAME --kind KIND",
			columns: []table.Column{{"ID", "id", table.ID}, {"NAME", "name", table.Text}, {"KIND", "kind", table.Text}, {"STATE", "state", table.State},
				{"REPOSITORY", "repo", table.Text}, {"CREATED", "created_at", table.Age}}},
		{name: "digest", list: "digest.list", get: "digest.get", label: "headline", hidden: []string{"html", "content"},
			columns: []table.Column{{"ID", "id", table.ID}, {"PERIOD", "period", table.Text}, {"KIND", "kind", table.Text}, {"HEADLINE",
				"headline", table.Title}, {"CREATED", "created_at", table.Age}}},
		{name: "check", list: "ci.runs", page: "ci", alone: true,
			columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"AGE", "created_at", table.Age},
				{"REPOSITORY", "repo", table.Text},
				{"COMMIT", "sha", table.SHA}, {"EXIT", "exit_code", table.Number}, {"COMMAND", "command", table.Title}}},
		{name: "audit", page: "audit", alone: true, list: "audit.tail",
			columns: []table.Column{{"SEQ", "seq", table.Number}, {"AGE", "at", table.Age}, {"KIND", "kind", table.Text}, {"ACTOR",
				"actor", table.Title}, {"OBJECT", "object", table.Object}}},
		{name: "stall", list: "task.stalls",
			columns: []table.Column{{"REASON", "reason", table.State}, {"TASKS", "count", table.Number}, {"SINCE", "since", table.Age},
				{"UNTIL", "clears_when", table.Until}},
			below: func(row map[string]any) string {
				if command := object.Clear(row["clear"]).Command(); command != "" {
					return "What moves it: " + command
				}
				return ""
			}},
	}
}
