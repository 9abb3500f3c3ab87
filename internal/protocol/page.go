package protocol

// PageProposed is what the agent would have a page of the knowledge base of the run's
// repository say: its whole text, or something that is put behind it. ID is unique
// within the run.
type PageProposed struct {
	ID    string   `json:"id"`
	Slug  string   `json:"slug"`
	Title string   `json:"title,omitempty"`
	Body  string   `json:"body,omitempty"`
	Add   string   `json:"add,omitempty"`
	Files []string `json:"files,omitempty"` // from which it is known
	Why   string   `json:"why"`
}
