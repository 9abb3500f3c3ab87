package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/source"
	"yardmaster/internal/domain/tracker"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/inbound"
	"yardmaster/internal/policy"
)

// SourceAsks implements source.Asks.
type SourceAsks struct{}

// File files the ask of a delivery, once for each key of a source. A verdict about one that
// is not trusted has no rights: a judge may drop it, link it to open work, or ask a person.
func (SourceAsks) File(tx *db.Tx, f source.Filing) (askID string, existing bool, count int64, err error) {
	n := ask.Filing{
		RepoIDs: []string{f.RepoID}, Title: f.Title, Body: f.Body, Source: ask.FromInbound, DedupeKey: f.Key,
		Namespace: ask.FromInbound + ":" + f.SourceID, By: "source:" + f.SourceID, RequestedBy: new(string), Again: f.Again,
		Strangers: true,
	}
	if f.Trusted {
		n.Scopes = policy.Scopes(policy.WriteTasks)
	}
	filed, existing, err := ask.File(tx, n)
	return filed.ID, existing, filed.Count, err
}

// SourceEchoes implements source.Echoes.
type SourceEchoes struct{}

// Sent tells whether an event was sent to the webhooks of tx.Account.
func (SourceEchoes) Sent(tx *db.Tx, eventID string) (bool, error) { return webhook.Sent(tx, eventID) }

// Made tells whether an object at a system was made for tx.Account by this server: an
// issue at Linear.
func (SourceEchoes) Made(tx *db.Tx, kind, key string) (bool, error) {
	if kind != inbound.Linear {
		return false, nil
	}
	return tracker.Made(tx, key)
}

// trackerCategory is the category of escalations about issues that were not opened.
const trackerCategory = "tracker_refused"

// RaiseUntracked asks a person to see to a task that did not become an issue at Linear.
func RaiseUntracked(tx *db.Tx, f tracker.Failure) error {
	_, err := escalation.Raise(tx, escalation.Draft{
		RepoID: &f.RepoID, Category: trackerCategory, Title: "Not opened at Linear: " + f.Title,
		Body: "A task with the sink linear did not become an issue, and is in no queue: " + f.Why +
			". Look at integration.linear_get, and create the task again.",
		Reason: f.Why,
	})
	return err
}
