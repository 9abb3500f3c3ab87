package description

import "regexp"

// kind is what a deviation is about.
type kind int

const (
	operation kind = iota // the operation is not described at all
	answer                // a part of a request or answer
	delivery              // a part of a delivery
	elsewhere             // the delivery is described for github.com alone
)

// deviation is a difference between GitHub and its description.
type deviation struct {
	kind   kind
	name   *regexp.Regexp // of operations or deliveries
	status int            // of answers; 0: all
	place  *regexp.Regexp // in the body
	source string         // who saw it, or where it is documented
}

// deviations lists what is allowed against the description. Each has its source.
var deviations = []deviation{
	{
		kind: operation, name: regexp.MustCompile(`^GET /repositories/\{repository_id\}$`),
		source: "GitHub redirects a renamed repository there (REST, Best practices, Follow redirects); octokit and go-github call it",
	},
	{
		kind: operation, name: regexp.MustCompile(`^GET .*/actions/jobs/\{job_id\}/logs$`), status: 410,
		source: "logs that have expired: rust-lang/triagebot#2241, makoni/actioneer-gtk#14",
	},
	{
		kind: answer, name: regexp.MustCompile(`/pulls`), place: regexp.MustCompile(`(^|/)head/repo$`),
		source: "head.repo is null once a fork is deleted: anthropics/claude-code-action, Cloudflare-Studio/ask-bonk#67",
	},
	{
		kind: delivery, name: regexp.MustCompile(`^pull-request`), place: regexp.MustCompile(`pull_request/head/repo$`),
		source: "the same null in deliveries: Cloudflare-Studio/ask-bonk#67",
	},
	{
		kind: answer, name: regexp.MustCompile(`/pulls/.*comments|/pulls/\{pull_number\}/comments`),
		place:  regexp.MustCompile(`(^|/)(line|position|start_line)$`),
		source: "null for outdated comments; the document allows it in deliveries (webhooks_review_comment) and in the list of a review",
	},
	{
		kind: answer, name: regexp.MustCompile(`^POST .*/pulls/\{pull_number\}/comments$`), place: regexp.MustCompile(`^(commit_id|path)$`),
		source: "a reply needs in_reply_to and body only: the text of in_reply_to says that the other members are ignored",
	},
	{
		kind: answer, name: regexp.MustCompile(`^(POST|PUT) .*/issues/\{issue_number\}/labels$`), place: regexp.MustCompile(`^$`),
		source: "the text of labels allows an array instead of an object, which go-github sends",
	},
	{
		kind: answer, name: regexp.MustCompile(`^GET /app/installations$`),
		place:  regexp.MustCompile(`^\d+/account/(name|slug|created_at|updated_at)$`),
		source: "the list wants an account to be a person and an enterprise at once (allOf); GET of a single installation has anyOf",
	},
	{
		kind: delivery, name: regexp.MustCompile(`^issues-`), place: regexp.MustCompile(`performed_via_github_app/events/\d+$`),
		source: "the same list, of an issue that an App opened",
	},
	{
		kind: elsewhere, name: regexp.MustCompile(`^(merge-group-|pull-request-(en|de)queued$)`),
		source: "the pages of Enterprise Server 3.19 have merge queues and these events (Webhook events and payloads), its document does not",
	},
	{
		kind: delivery, name: regexp.MustCompile(`^check-suite`), place: regexp.MustCompile(`app/events/\d+$`),
		source: "the list of events in App objects is older than the document's own x-webhooks: repository_ruleset is not in it",
	},
}

func deviates(k kind, name string, status int, place string) bool {
	for _, d := range deviations {
		here := d.place == nil || d.place.MatchString(place)
		if d.kind == k && d.name.MatchString(name) && (d.status == 0 || d.status == status) && here {
			return true
		}
	}
	return false
}
