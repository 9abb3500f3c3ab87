package review

import "yardmaster/internal/db"

// threadPlace is where a finding stands at its host.
type threadPlace struct{ FindingID, CommentID string }

var (
	insertPlace = db.S(`INSERT INTO review_places (finding_id, pr_id, comment_id) VALUES ($1, $2, $3)
		ON CONFLICT (finding_id) DO UPDATE SET comment_id = excluded.comment_id`)
	threadOf  = db.Q[string](`SELECT comment_id FROM review_places WHERE finding_id = $1`)
	threadsOf = db.Q[threadPlace](`SELECT finding_id, comment_id FROM review_places WHERE pr_id = $1 ORDER BY finding_id`)
)
