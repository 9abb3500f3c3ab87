package cli

import (
	"fmt"
	"io"
	"strings"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/table"
	"yardmaster/internal/client"
	"yardmaster/internal/terminal"
)

// nounsUnder are kinds of objects that are listed under another one, and have no commands of
// their own.
func nounsUnder() []*noun {
	return []*noun{reviewNoun(), findingNoun(), threadNoun(), ruleNoun(), tryNoun(), attemptNoun(), sourceDeliveryNoun(), flakeNoun(),
		priceNoun(), routeNoun(), variableNoun()}
}

func reviewNoun() *noun {
	return &noun{name: "review", list: "review.status", label: "title", none: "There are none: nobody has had it reviewed.",
		columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"VERDICT", "verdict", table.State}, {"AGE", "created_at", table.Age},
			{"COMMIT", "head_sha", table.SHA}, {"FINDINGS", "findings_kept", table.Number}, {"NOTE", "note", table.Title}}}
}

func findingNoun() *noun {
	return &noun{name: "finding", list: "review.findings", label: "claim", none: "There are none: reviews have found nothing.",
		block: writeFinding,
		columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"HOLDS", "holds_merge", table.Text}, {"SEVERITY",
			"severity", table.Text},
			{"FILE", "file", table.Title}, {"LINE", "line", table.Number}, {"CLAIM", "claim", table.Title}, {"WHY", "why", table.Title}, {"AGE",
				"created_at", table.Age}}}
}

// writeFinding writes a finding with all that a person decides by.
func writeFinding(w io.Writer, row map[string]any) {
	s, state := screen.Out(), object.Text(row["state"])
	where := object.Text(row["file"])
	if line := object.Text(row["line"]); line != "" {
		where += ":" + line
	}
	if object.Text(row["side"]) == "LEFT" {
		where += " before the change"
	}
	line := s.Paint(terminal.Strong, client.Inert(object.Short(object.Text(row["id"])))) + "  " +
		s.Paint(terminal.ToneOf(state), client.Inert(state)) + "  " + client.Inert(object.Text(row["severity"])+"  "+where)
	if row["holds_merge"] == true {
		line += "  " + s.Paint(terminal.Ask, "holds the merge")
	}
	fmt.Fprintln(w, line)
	for _, name := range []string{"claim", "why", "how_to_see", "suggestion"} {
		if text := object.Text(row[name]); strings.TrimSpace(text) != "" {
			screen.Paragraph(w, text)
		}
	}
}

func ruleNoun() *noun {
	return &noun{name: "rule", list: "review.rules", perRepo: true, label: "claim", none: "There are none: nothing was dismissed there.",
		columns: []table.Column{{"ID", "id", table.Text}, {"KIND", "kind", table.Text}, {"SYMBOL", "symbol", table.Text}, {"CLAIM", "claim", table.Title},
			{"REASON", "reason", table.Title}, {"BY", "created_by", table.Text}, {"AGE", "created_at", table.Age}}}
}

func tryNoun() *noun {
	return &noun{name: "try", list: "task.attempts", label: "outcome", none: "There are none: no box has begun it.",
		columns: []table.Column{{"TRY", "attempt", table.Number}, {"STATE", "state", table.State}, {"OUTCOME", "outcome", table.State},
			{"WHY", "failure_kind|ended_reason", table.Text}, {"BEGAN", "created_at", table.Age}, {"ENDED", "ended_at", table.Age},
			{"MODEL", "model", table.Title}, {"AGENT", "agent", table.Text}, {"BOX", "box_id", table.Text}, {"RUN", "id", table.Text}}}
}

// attemptNoun are the attempts to deliver an event to a webhook.
func attemptNoun() *noun {
	return &noun{name: "delivery", list: "webhook.deliveries", names: []string{"event_id"}, label: "type",
		none: "There are none: nothing was sent yet.",
		columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"AGE", "at", table.Age}, {"WEBHOOK", "hook_name", table.Text},
			{"EVENT", "type", table.Text}, {"TRY", "attempt", table.Number}, {"ANSWER", "response_status", table.Number}, {"NEXT",
				"next_attempt_at", table.Age},
			{"ERROR", "error", table.Title}}}
}

func sourceDeliveryNoun() *noun {
	return &noun{name: "received", list: "integration.deliveries", label: "title", none: "There are none: nothing came yet.",
		columns: []table.Column{{"ID", "id", table.ID}, {"OUTCOME", "outcome", table.State}, {"AGE", "received_at", table.Age}, {"EVENT", "event", table.Text},
			{"TITLE", "title", table.Title}, {"REASON", "reason", table.Title}, {"REPOSITORY", "repo", table.Text}, {"ASK", "ask_id", table.Text}}}
}

func flakeNoun() *noun {
	return &noun{name: "flake", list: "ci.flakes", perRepo: true, label: "test", none: "There are none: no failure came and went.",
		columns: []table.Column{{"JOB", "job", table.Title}, {"TEST", "test", table.Title}, {"SEEN", "seen", table.Number}, {"OF", "runs", table.Number},
			{"OFTEN", "often", table.Text}, {"LAST", "last_at", table.Age}, {"ERROR", "error", table.Title}}}
}

func priceNoun() *noun {
	return &noun{name: "price", list: "billing.price_list", key: "model", none: "There are none: the prices of the keys and of the server hold.",
		columns: []table.Column{{"PROVIDER", "provider", table.Text}, {"MODEL", "model", table.Title}, {"INPUT", "input_usd", table.USD},
			{"OUTPUT", "output_usd", table.USD}, {"CACHE READ", "cache_read_usd", table.USD}, {"CACHE WRITE", "cache_write_usd", table.USD}}}
}

// routeNoun are the addresses of teams that get notices of the account.
func routeNoun() *noun {
	return &noun{name: "route", list: "email_route.list", names: []string{"address"}, label: "address",
		first: "yardmaster notification routes create ADDRESS --kinds KIND",
		columns: []table.Column{{"ID", "id", table.ID}, {"ADDRESS", "address", table.Title}, {"KINDS", "kinds", table.Title},
			{"CONFIRMED", "confirmed_at", table.Age},
			{"REFUSED", "email_refused_at", table.Age}, {"CREATED", "created_at", table.Age}}}
}

// variableNoun are the variables of prompts.
func variableNoun() *noun {
	return &noun{name: "variable", list: "config.list", key: "key", label: "key",
		first: "yardmaster prompt variables set KEY VALUE --scope account",
		columns: []table.Column{{"KEY", "key", table.Text}, {"SCOPE", "scope", table.Text}, {"OF", "ref", table.Text}, {"VALUE", "value", table.Title},
			{"UPDATED", "updated_at", table.Age}}}
}

// threadNoun are the threads in which people talk about a pull request.
func threadNoun() *noun {
	return &noun{name: "thread", list: "pr.comments", label: "path", none: "There are none: nobody has said anything.", block: writeThread,
		columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"AGE", "created_at", table.Age}, {"FILE", "path", table.Title},
			{"LINE", "line", table.Number}}}
}
