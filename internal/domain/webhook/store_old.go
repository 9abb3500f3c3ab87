package webhook

import (
	"time"

	"yardmaster/internal/db"
)

var (
	oldEvents = db.Q[int64](`SELECT COUNT(*) AS n FROM webhook_events WHERE created_at < $1 AND NOT EXISTS (SELECT 1
		FROM webhook_deliveries d WHERE d.event_id = webhook_events.id AND (d.due_at IS NOT NULL OR d.created_at >= $1))`)
	oldDeliveries = db.Q[int64](`SELECT COUNT(*) AS n FROM webhook_deliveries WHERE due_at IS NULL AND created_at < $1`)
)

// OldEvents counts the events that are older than a time and whose deliveries are old and over: those
// that go next.
func OldEvents(tx *db.Tx, at time.Time) (int64, error) { return oldEvents.One(tx, at) }

// OldDeliveries counts the deliveries that are older than a time and over: those that go next.
func OldDeliveries(tx *db.Tx, at time.Time) (int64, error) { return oldDeliveries.One(tx, at) }
