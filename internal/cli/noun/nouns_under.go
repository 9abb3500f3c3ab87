package noun

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

// Below are kinds of objects that are listed under another one, and have no commands of
// their own.
func Below() []*Noun {
	return []*Noun{Review(), Finding(), Thread(), Rule(), Try(), Attempt(), SourceDelivery(), Flake(),
		Price(), Route(), Variable(), KnowledgePage(), KnowledgeVersion(), KnowledgeProposal()}
}

// Review is a review by agents, of a pull request.
func Review() *Noun {
	return &Noun{Name: "review", List: "review.status", Label: "title", None: "There are none: nobody has had it reviewed.",
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"VERDICT", "verdict", table.State},
			{"AGE", "created_at", table.Age}, {"COMMIT", "head_sha", table.SHA}, {"FINDINGS", "findings_kept", table.Number},
			{"NOTE", "note", table.Title}}}
}

// Finding is what a review has found.
func Finding() *Noun {
	return &Noun{Name: "finding", List: "review.findings", Label: "claim", None: "There are none: reviews have found nothing.",
		Block: writeFinding,
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"HOLDS", "holds_merge", table.Text},
			{"SEVERITY", "severity", table.Text}, {"FILE", "file", table.Title}, {"LINE", "line", table.Number},
			{"CLAIM", "claim", table.Title}, {"WHY", "why", table.Title}, {"AGE", "created_at", table.Age}}}
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

// Rule is what reviews of a repository do not name any more.
func Rule() *Noun {
	return &Noun{Name: "rule", List: "review.rules", PerRepo: true, Label: "claim", None: "There are none: nothing was dismissed there.",
		Columns: []table.Column{{"ID", "id", table.Text}, {"KIND", "kind", table.Text}, {"SYMBOL", "symbol", table.Text},
			{"CLAIM", "claim", table.Title}, {"REASON", "reason", table.Title}, {"BY", "created_by", table.Text},
			{"AGE", "created_at", table.Age}}}
}

// Try is a try at a task that has several.
func Try() *Noun {
	return &Noun{Name: "try", List: "task.attempts", Label: "outcome", None: "There are none: no box has begun it.",
		Columns: []table.Column{{"TRY", "attempt", table.Number}, {"STATE", "state", table.State},
			{"OUTCOME", "outcome", table.State}, {"WHY", "failure_kind|ended_reason", table.State},
			{"BEGAN", "created_at", table.Age}, {"ENDED", "ended_at", table.Age}, {"COST", "usage.cost_usd", table.Cost},
			{"PUSHED", "pushed_sha", table.SHA}, {"MODEL", "model", table.Title}, {"AGENT", "agent", table.Text},
			{"BOX", "box_id", table.Extra}, {"RUN", "id", table.Extra}}}
}

// Attempt are the attempts to deliver an event to a webhook.
func Attempt() *Noun {
	return &Noun{Name: "delivery", List: "webhook.deliveries", Names: []string{"event_id"}, Label: "type",
		None: "There are none: nothing was sent yet.",
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATUS", "status", table.State}, {"AGE", "at", table.Age},
			{"WEBHOOK", "hook_name", table.Text}, {"EVENT", "type", table.Text}, {"TRY", "attempt", table.Number},
			{"ANSWER", "response_status", table.Number}, {"NEXT", "next_attempt_at", table.Age}, {"ERROR", "error", table.Title}}}
}

// SourceDelivery is what a source has sent.
func SourceDelivery() *Noun {
	return &Noun{Name: "received", List: "integration.deliveries", Label: "title", None: "There are none: nothing came yet.",
		Columns: []table.Column{{"ID", "id", table.ID}, {"OUTCOME", "outcome", table.State}, {"AGE", "received_at", table.Age},
			{"EVENT", "event", table.Text}, {"TITLE", "title", table.Title}, {"REASON", "reason", table.Title},
			{"REPOSITORY", "repo", table.Text}, {"ASK", "ask_id", table.Text}}}
}

// Flake is a test that fails at times.
func Flake() *Noun {
	return &Noun{Name: "flake", List: "ci.flakes", PerRepo: true, Label: "test", None: "There are none: no failure came and went.",
		Columns: []table.Column{{"JOB", "job", table.Title}, {"TEST", "test", table.Title}, {"SEEN", "seen", table.Number},
			{"OF", "runs", table.Number}, {"OFTEN", "often", table.Text}, {"LAST", "last_at", table.Age},
			{"ERROR", "error", table.Title}}}
}

// Price is what a model costs.
func Price() *Noun {
	return &Noun{Name: "price", List: "billing.price_list", Key: "model", None: "There are none: the prices of the keys and of the server hold.",
		Columns: []table.Column{{"PROVIDER", "provider", table.Text}, {"MODEL", "model", table.Title},
			{"INPUT", "input_usd", table.USD}, {"OUTPUT", "output_usd", table.USD}, {"CACHE READ", "cache_read_usd", table.USD},
			{"CACHE WRITE", "cache_write_usd", table.USD}}}
}

// Route are the addresses of teams that get notices of the account.
func Route() *Noun {
	return &Noun{Name: "route", List: "email_route.list", Names: []string{"address"}, Label: "address",
		First: "yardmaster notification routes create ADDRESS --kinds KIND",
		Columns: []table.Column{{"ID", "id", table.ID}, {"ADDRESS", "address", table.Title}, {"KINDS", "kinds", table.Title},
			{"CONFIRMED", "confirmed_at", table.Age}, {"REFUSED", "email_refused_at", table.Age},
			{"CREATED", "created_at", table.Age}}}
}

// Variable are the variables of prompts.
func Variable() *Noun {
	return &Noun{Name: "variable", List: "config.list", Key: "key", Label: "key",
		First: "yardmaster prompt variables set KEY VALUE --scope account",
		Columns: []table.Column{{"KEY", "key", table.Text}, {"SCOPE", "scope", table.Text}, {"OF", "ref", table.Text},
			{"VALUE", "value", table.Title}, {"UPDATED", "updated_at", table.Age}}}
}

// Thread are the threads in which people talk about a pull request.
func Thread() *Noun {
	return &Noun{Name: "thread", List: "pr.comments", Label: "path", None: "There are none: nobody has said anything.", Block: writeThread,
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"AGE", "created_at", table.Age},
			{"FILE", "path", table.Title}, {"LINE", "line", table.Number}}}
}

// writeThread writes a thread with all that is said in it.
func writeThread(w io.Writer, row map[string]any) {
	s, state := screen.Out(), object.Text(row["state"])
	where := object.Text(row["path"])
	if line := object.Text(row["line"]); line != "" {
		where += ":" + line
	}
	line := s.Paint(terminal.Strong, client.Inert(object.Text(row["id"]))) + "  " + s.Paint(terminal.ToneOf(state), client.Inert(state)) +
		"  " + client.Inert(where)
	if object.Text(row["request_id"]) != "" {
		line += "  " + s.Paint(terminal.Ask, "requests changes")
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
	comments, _ := row["comments"].([]any)
	for _, c := range comments {
		one, _ := c.(map[string]any)
		fmt.Fprintln(w, "  "+client.Inert(object.Text(one["author"])))
		screen.Paragraph(w, object.Text(one["body"]))
	}
}

// Gift is what a repository of the account was given.
func Gift() *Noun {
	return &Noun{Name: "gift", List: "donation.received", Label: "target_repo_full_name", None: "There are none: nothing was given yet.",
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"KIND", "kind", table.Text},
			{"FROM", "donor", table.Text}, {"REPOSITORY", "target_repo_full_name", table.Title}, {"SERVES", "serves", table.Text},
			{"MODEL", "model.model", table.Text}, {"USED", "used_usd", table.Number}, {"LEFT", "left_usd", table.Number},
			{"AGE", "created_at", table.Age}}}
}

// KnowledgePage is a page of the knowledge base of a repository.
func KnowledgePage() *Noun {
	return &Noun{Name: "page", List: "kb.page_list", Key: "slug", Label: "title", First: "yardmaster kb edit SLUG",
		Columns: []table.Column{{"SLUG", "slug", table.Text}, {"TITLE", "title", table.Title}, {"STALE SINCE", "stale.since", table.Age},
			{"VERSION", "version", table.Number}, {"UPDATED", "updated_at", table.Age}, {"BY", "provenance.by", table.Text}}}
}

// KnowledgeVersion is what a page of the knowledge base is, or was.
func KnowledgeVersion() *Noun {
	return &Noun{Name: "version", List: "kb.page_versions", Key: "version", Label: "title", None: "There are none.",
		Columns: []table.Column{{"VERSION", "version", table.Number}, {"TITLE", "title", table.Title}, {"UPDATED", "updated_at", table.Age},
			{"BY", "provenance.by", table.Text}, {"RUN", "provenance.run_id", table.Text}}}
}

// KnowledgeProposal is what a run would have a page of the knowledge base say.
func KnowledgeProposal() *Noun {
	return &Noun{Name: "proposal", List: "kb.proposal_list", Label: "slug", None: "There are none.", Block: writeProposal,
		Columns: []table.Column{{"ID", "id", table.ID}, {"STATE", "state", table.State}, {"PAGE", "slug", table.Text},
			{"KIND", "kind", table.Text}, {"WHY", "why", table.Title}, {"RUN", "run_id", table.Text}, {"AGE", "created_at", table.Age}}}
}

// KeptAnswer is an answer about a repository that was given before.
func KeptAnswer() *Noun {
	return &Noun{Name: "answer", List: "project.answers", Label: "question", None: "There are none.",
		Columns: []table.Column{{"ASKED", "asked_at", table.Age}, {"STALE", "stale", table.Text}, {"QUESTION", "question", table.Title},
			{"ANSWER", "answer.answer", table.Title}}}
}
