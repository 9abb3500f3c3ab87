// Package docs holds the documents of this folder that people read who use or run the
// program. The dashboard shows them. Those for people who change the program are only in
// the repository.
package docs

import "embed"

// Part is a part of the list of documents.
type Part struct {
	Name string
	Docs []string // names of files, without .md
}

// Parts are the documents in the order of the list.
var Parts = []Part{
	{"To begin with", []string{"contents", "first-day", "terminal", "cli", "glossary"}},
	{"Work", []string{"repositories", "checkouts", "environments", "knowledge", "questions", "plans", "pulls", "approvals", "merging",
		"pull-moves", "reviews", "schedules", "secrets", "triage",
		"budgets", "models", "donations", "copies", "artifacts", "provenance", "boards", "simulate"}},
	{"Boxes", []string{"boxes", "updates", "runs", "isolation", "agents"}},
	{"Other systems", []string{"github", "sources", "webhooks", "notifications", "digests"}},
	{"The server", []string{"install", "operating", "sizing", "configure", "backup", "departure", "limits", "nodes", "scaling", "nats",
		"proxies", "outside", "keys", "record", "people", "payment",
		"observe", "metrics", "alerts", "trouble", "security",
		"security-boxes", "security-agents", "security-doors", "scenarios", "chaos"}},
}

// Developers are the documents about the source.
var Developers = []string{"architecture", "packages", "packages-proof", "walks", "benchmarks", "benchmarks-calls", "benchmarks-systems",
	"conformance", "libraries", "by-hand", "style", "testing"}

//go:embed *.md
var files embed.FS

// Text returns the Markdown of a document.
func Text(name string) (string, error) {
	text, err := files.ReadFile(name + ".md")
	return string(text), err
}
