package cli

import (
	"slices"
	"sync"

	"yardmaster/internal/cli/object"
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
			columns: []column{{"ID", "id", asID}, {"AGE", "created_at", asAge}, {"CATEGORY", "category", asState},
				{"REPOSITORY", "repo", asText},
				{"TITLE", "title", asTitle}, {"RESOLVED", "resolved_at", asAge}, {"BY", "resolved_by", asText}},
			next: func(row map[string]any) []string {
				if row["resolved_at"] != nil {
					return nil
				}
				return []string{"When a person has dealt with it: yardmaster escalation resolve " + client.Word(object.Short(object.Text(row["id"]))) + " NOTE"}
			}},
		{name: "session", list: "session.list", get: "session.get", page: "sessions", label: "kind",
			columns: []column{{"ID", "id", asID}, {"AGE", "started_at", asAge}, {"KIND", "kind", asText}, {"OUTCOME", "outcome", asState},
				{"REPOSITORY", "repo", asText}, {"MODEL", "model", asExtraTitle}, {"CALLS", "calls", asExtraCount},
				{"COST", "cost_usd", asUSD}, {"TITLE", "title", asTitle}}},
		{name: "secret", page: "settings/secrets", alone: true, list: "secret.list", key: "name", first: "yardmaster secret set NAME",
			none: "The account has none: yardmaster secret set NAME keeps one. " +
				"Those of a repository: yardmaster secret list --repo OWNER/NAME",
			columns: []column{{"NAME", "name", asText}, {"ENVIRONMENT", "environment", asText}, {"DELIVERY", "delivery", asText},
				{"HOSTS", "hosts", asTitle}, {"VARIABLE", "variable", asText}, {"UPDATED", "updated_at", asAge},
				{"BY", "updated_by", asText}}},
		{name: "repo-secret", list: "project_secret.list", key: "name", perRepo: true,
			first: "yardmaster secret set NAME --repo OWNER/NAME",
			columns: []column{{"NAME", "name", asText}, {"ENVIRONMENT", "environment", asText}, {"DELIVERY", "delivery", asText},
				{"HOSTS", "hosts", asTitle}, {"VARIABLE", "variable", asText}, {"UPDATED", "updated_at", asAge},
				{"BY", "updated_by", asText}}},
		{name: "template", page: "templates", alone: true, list: "template.list", get: "template.get", key: "name", label: "name",
			first: "yardmaster template set NAME",
			columns: []column{{"NAME", "name", asText}, {"AGENT", "agent", asText}, {"MODEL", "model", asTitle},
				{"PROVIDER", "provider", asText},
				{"ISOLATION", "isolation", asText}, {"TIMEOUT", "timeout", asSpan}, {"UPDATED", "updated_at", asAge}},
			plain: func(row map[string]any) {
				if text := object.Span(row["timeout"]); text != "" {
					row["timeout"] = text
				}
			}},
		{name: "token", page: "settings/tokens", alone: true, list: "token.list", names: []string{"name", "prefix"}, label: "name",
			first: "yardmaster token create --name NAME",
			columns: []column{{"ID", "id", asID}, {"NAME", "name", asTitle}, {"BEGINS WITH", "prefix", asText},
				{"REVOKED", "revoked", asText},
				{"USED", "last_used_at", asAge}, {"ENDS", "expires_iso", asAge}, {"CREATED", "created_at", asAge}}},
		{name: "member", page: "settings/members", alone: true, list: "member.list", key: "user_id", names: []string{"login"},
			label: "login",
			first: "yardmaster member invite ADDRESS",
			columns: []column{{"ID", "user_id", asID}, {"LOGIN", "login", asText}, {"NAME", "name", asTitle}, {"ROLE",
				"role", asText}, {"JOINED", "joined_at", asAge}}},
		{name: "invitation", list: "member.list_invitations", label: "email",
			columns: []column{{"ID", "id", asText}, {"EMAIL", "email", asTitle}, {"LOGIN", "login", asText},
				{"ROLE", "role", asText}, {"STATUS", "status", asState},
				{"SENT", "created_at", asAge}, {"ENDS", "expires_at", asAge}}},
		{name: "schedule", page: "settings/schedules", alone: true, list: "schedule.list", get: "schedule.get",
			names: []string{"title"}, label: "title",
			first: `yardmaster schedule create --title … --body … --cron "0 6 * * 1-5"`,
			columns: []column{{"ID", "id", asID}, {"STATE", "state", asState}, {"CRON", "cron", asText}, {"NEXT", "next_at", asAge},
				{"LAST", "last_at", asAge}, {"OUTCOME", "last_outcome", asState}, {"REPOSITORY", "repo", asText},
				{"TITLE", "title", asTitle}}},
		{name: "issue", list: "issue.list", get: "issue.get", perRepo: true, label: "title", page: "issues",
			columns: []column{{"NUMBER", "number", asNumber}, {"STATE", "state", asState}, {"TRIAGE", "triage",
				asState}, {"AGE", "created_at", asAge},
				{"AUTHOR", "author", asText}, {"TITLE", "title", asTitle}, {"ID", "id", asID}}},
		{name: "notification", list: "notification.list", label: "title", page: "notifications", alone: true, archived: "filter=state:all",
			columns: []column{{"ID", "id", asID}, {"AGE", "updated_at", asAge}, {"KIND", "kind", asText}, {"READ", "read_at", asAge},
				{"COUNT", "count", asNumber}, {"REPOSITORY", "repo", asText}, {"TITLE", "title", asTitle}}},
		{name: "webhook", page: "settings/webhooks", alone: true, list: "webhook.list", names: []string{"name"}, label: "name",
			first: "yardmaster webhook create --name NAME --url ADDRESS",
			columns: []column{{"ID", "id", asID}, {"NAME", "name", asText}, {"FORMAT", "format", asText}, {"HEALTHY", "healthy", asText},
				{"URL", "url", asTitle}, {"EVENTS", "events", asTitle}, {"BY", "created_by", asText}, {"CREATED", "created_at", asAge}}},
		{name: "source", page: "settings/integrations", list: "integration.list", get: "integration.get", names: []string{"name"},
			label: "name",
			first: "yardmaster source connect --name NAME --kind KIND",
			columns: []column{{"ID", "id", asID}, {"NAME", "name", asText}, {"KIND", "kind", asText}, {"STATE", "state", asState},
				{"REPOSITORY", "repo", asText}, {"CREATED", "created_at", asAge}}},
		{name: "digest", list: "digest.list", get: "digest.get", label: "headline", hidden: []string{"html", "content"},
			columns: []column{{"ID", "id", asID}, {"PERIOD", "period", asText}, {"KIND", "kind", asText}, {"HEADLINE",
				"headline", asTitle}, {"CREATED", "created_at", asAge}}},
		{name: "check", list: "ci.runs", page: "ci", alone: true,
			columns: []column{{"ID", "id", asID}, {"STATUS", "status", asState}, {"AGE", "created_at", asAge},
				{"REPOSITORY", "repo", asText},
				{"COMMIT", "sha", asSHA}, {"EXIT", "exit_code", asNumber}, {"COMMAND", "command", asTitle}}},
		{name: "audit", page: "audit", alone: true, list: "audit.tail",
			columns: []column{{"SEQ", "seq", asNumber}, {"AGE", "at", asAge}, {"KIND", "kind", asText}, {"ACTOR",
				"actor", asTitle}, {"OBJECT", "object", asObject}}},
		{name: "stall", list: "task.stalls",
			columns: []column{{"REASON", "reason", asState}, {"TASKS", "count", asNumber}, {"SINCE", "since", asAge},
				{"UNTIL", "clears_when", asUntil}},
			below: func(row map[string]any) string {
				if command := object.Clear(row["clear"]).Command(); command != "" {
					return "What moves it: " + command
				}
				return ""
			}},
	}
}
