package cli

import (
	"fmt"
	"io"
	"strings"

	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/screen"
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
		columns: []column{{"ID", "id", asID}, {"STATUS", "status", asState}, {"VERDICT", "verdict", asState}, {"AGE", "created_at", asAge},
			{"COMMIT", "head_sha", asSHA}, {"FINDINGS", "findings_kept", asNumber}, {"NOTE", "note", asTitle}}}
}

func findingNoun() *noun {
	return &noun{name: "finding", list: "review.findings", label: "claim", none: "There are none: reviews have found nothing.",
		block: writeFinding,
		columns: []column{{"ID", "id", asID}, {"STATE", "state", asState}, {"HOLDS", "holds_merge", asText}, {"SEVERITY",
			"severity", asText},
			{"FILE", "file", asTitle}, {"LINE", "line", asNumber}, {"CLAIM", "claim", asTitle}, {"WHY", "why", asTitle}, {"AGE",
				"created_at", asAge}}}
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
		columns: []column{{"ID", "id", asText}, {"KIND", "kind", asText}, {"SYMBOL", "symbol", asText}, {"CLAIM", "claim", asTitle},
			{"REASON", "reason", asTitle}, {"BY", "created_by", asText}, {"AGE", "created_at", asAge}}}
}

func tryNoun() *noun {
	return &noun{name: "try", list: "task.attempts", label: "outcome", none: "There are none: no box has begun it.",
		columns: []column{{"TRY", "attempt", asNumber}, {"STATE", "state", asState}, {"OUTCOME", "outcome", asState},
			{"WHY", "failure_kind|ended_reason", asText}, {"BEGAN", "created_at", asAge}, {"ENDED", "ended_at", asAge},
			{"MODEL", "model", asTitle}, {"AGENT", "agent", asText}, {"BOX", "box_id", asText}, {"RUN", "id", asText}}}
}

// attemptNoun are the attempts to deliver an event to a webhook.
func attemptNoun() *noun {
	return &noun{name: "delivery", list: "webhook.deliveries", names: []string{"event_id"}, label: "type",
		none: "There are none: nothing was sent yet.",
		columns: []column{{"ID", "id", asID}, {"STATUS", "status", asState}, {"AGE", "at", asAge}, {"WEBHOOK", "hook_name", asText},
			{"EVENT", "type", asText}, {"TRY", "attempt", asNumber}, {"ANSWER", "response_status", asNumber}, {"NEXT",
				"next_attempt_at", asAge},
			{"ERROR", "error", asTitle}}}
}

func sourceDeliveryNoun() *noun {
	return &noun{name: "received", list: "integration.deliveries", label: "title", none: "There are none: nothing came yet.",
		columns: []column{{"ID", "id", asID}, {"OUTCOME", "outcome", asState}, {"AGE", "received_at", asAge}, {"EVENT", "event", asText},
			{"TITLE", "title", asTitle}, {"REASON", "reason", asTitle}, {"REPOSITORY", "repo", asText}, {"ASK", "ask_id", asText}}}
}

func flakeNoun() *noun {
	return &noun{name: "flake", list: "ci.flakes", perRepo: true, label: "test", none: "There are none: no failure came and went.",
		columns: []column{{"JOB", "job", asTitle}, {"TEST", "test", asTitle}, {"SEEN", "seen", asNumber}, {"OF", "runs", asNumber},
			{"OFTEN", "often", asText}, {"LAST", "last_at", asAge}, {"ERROR", "error", asTitle}}}
}

func priceNoun() *noun {
	return &noun{name: "price", list: "billing.price_list", key: "model", none: "There are none: the prices of the keys and of the server hold.",
		columns: []column{{"PROVIDER", "provider", asText}, {"MODEL", "model", asTitle}, {"INPUT", "input_usd", asUSD},
			{"OUTPUT", "output_usd", asUSD}, {"CACHE READ", "cache_read_usd", asUSD}, {"CACHE WRITE", "cache_write_usd", asUSD}}}
}
