package record

import (
	"time"
)

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

// QueuePlace is the place of a pull request in a merge queue.
type QueuePlace struct {
	_        struct{}  `doc:"The place of a pull request in a merge queue." schema:"QueuePlace"`
	Queue    string    `json:"queue" enum:"own,host" example:"own" doc:"own: the queue of this server; host: that of the code host"`
	State    string    `json:"state" enum:"waiting,batched,going,queued" example:"batched" doc:"waiting: for its batch, or to be entered at the code host; batched: it is checked together with others; going: its merge is made; queued: the code host has it"`
	Position int64     `json:"position" example:"2" doc:"from 1, in order of approval; at the code host its word, and 0 before it has said"`
	At       time.Time `json:"at" doc:"since when it is in the queue"`
}
