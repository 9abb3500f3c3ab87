package measure

// PullState is the state of a pull request.
type PullState string

// Values lists the states that people see.
func (PullState) Values() []string { return []string{"opening", "open", "merged", "closed"} }

// Presence is whether a box is heard of.
type Presence string

// Whether a box is heard of, by the age of its last beat.
const (
	BoxOnline  = "online"
	BoxStale   = "stale"
	BoxOffline = "offline"
)

// Values lists all of them.
func (Presence) Values() []string { return []string{BoxOnline, BoxStale, BoxOffline} }

// BoxState is the state of a box that was not revoked.
type BoxState string

// Values lists all states.
func (BoxState) Values() []string { return []string{"enrolled", "draining", "drained"} }
