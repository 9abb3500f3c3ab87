package measure

// What the words mean, as conditions of SQL. Times are those of spanArgs.
const (
	// A pull request is merged when its host has it merged, whoever did it.
	merged = `merged_at >= :from_at AND merged_at < :to_at`
	// Closed is one that was closed and not merged.
	closed = `state = 'closed' AND closed_at >= :from_at AND closed_at < :to_at`
	// Stopped is an open one that goes no further without a person.
	stopped = `state = 'open' AND needs <> ''`
	// Another way: stopped, and not by the question that is open about it.
	stoppedOtherwise = `state = 'open' AND needs NOT IN ('', 'asked', 'push_asked')`
	// A question about a pull request waits for its answer.
	asked = `state = 'pending'`

	// A task ended when it came to its end for good; a task that is dispatched anew has not.
	ended     = `finished_at >= :from_at AND finished_at < :to_at`
	failed    = `status = 'failed'`
	succeeded = `status IN ('completed', 'merged')`
	graded    = `status IN ('completed', 'merged', 'failed')` // succeeded or failed
	atWork    = `status IN ('claimed', 'running')`
	shipping  = `status IN ('awaiting_ci', 'awaiting_review', 'mergeable')`
	unended   = `status NOT IN ('completed', 'merged', 'cancelled', 'failed')`
	// Filed are tasks that somebody wanted: reviews, repairs and checks follow from them.
	filed = `kind NOT IN ('review', 'babysit', 'ci') AND created_at >= :from_at AND created_at < :to_at`

	// Ready are tasks that a box could take at once, but for what holds the repository or its keys.
	ready = `status = 'pending' AND waiting_deps = 0 AND not_before = 0 AND conflict_with IS NULL`

	// A run counts in the span in which it ended, whenever it began; one that was stopped from
	// outside was no try.
	runEnded = `ended_at >= :from_at AND ended_at < :to_at`
	tried    = `outcome IN ('succeeded', 'failed', 'lost')`

	// Spent is the cost of calls, in the minute in which each ended; a call without a known price
	// costs NULL and is counted in unpriced.
	spent = `minute >= :from_at AND minute < :to_at`

	planHeld = `bucket = 'held'`
)
