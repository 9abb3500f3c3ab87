package record

// Reasons why a merge waits for its host.
const (
	Limited        = "The code host permits no more calls for now."
	Unanswered     = "The code host does not answer now. It is asked again."
	UngrantedWords = "The owner of the repository has yet to grant the permission " // and its name
)

// Order is an approved merge that stands.
type Order struct {
	ID      string
	HeadSHA string `db:"head_sha"`
	BaseRef string
}
