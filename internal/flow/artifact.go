package flow

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/artifact"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/provenance"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// ArtifactPlaces implements artifact.Places.
type ArtifactPlaces struct{}

// Run finds the task and the repository of a run of tx.Account.
func (ArtifactPlaces) Run(tx *db.Tx, runID string) (taskID, repoID string, ok bool, err error) {
	return run.PlaceOf(tx, runID)
}

// Held is the account of a live attempt that a box holds.
func (ArtifactPlaces) Held(tx *db.Tx, boxID, runID string, attempt int) (string, error) {
	return run.AccountOf(tx, boxID, runID, attempt)
}

// Task finds the repository of a task of tx.Account.
func (ArtifactPlaces) Task(tx *db.Tx, taskID string) (string, bool, error) {
	t, ok, err := task.Get(tx, tx.Account, taskID)
	return t.RepoID, ok, err
}

// Repo tells whether tx.Account has a repository.
func (ArtifactPlaces) Repo(tx *db.Tx, repoID string) (bool, error) {
	_, ok, err := repo.ByID(tx, repoID)
	return ok, err
}

// RunArtifacts implements run.Artifacts.
type RunArtifacts struct{}

// OfTask lists what a task of tx.Account has stored, newest first.
func (RunArtifacts) OfTask(tx *db.Tx, taskID string) ([]run.Artifact, error) {
	all, err := artifact.OfTask(tx, taskID)
	out := make([]run.Artifact, len(all))
	for i, a := range all {
		out[i] = run.Artifact{
			ID: a.ID, RunID: a.RunID, Name: a.Name, ContentType: a.ContentType, Size: a.Size, CreatedAt: a.CreatedAt,
		}
	}
	return out, err
}

// ProofFiles implements provenance.Artifacts.
type ProofFiles struct{ *artifact.Service }

// KeepFile records a file of tx.Account, and answers the id of its artifact.
func (p ProofFiles) KeepFile(tx *db.Tx, f provenance.File) (string, error) {
	return p.Service.KeepFile(tx, artifact.File(f))
}

// shared: owners and admins hear that anybody can have something of the account.
func (n Notify) shared(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	data, err := artifact.SharedEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Connection, Noun: nounArtifact, Subject: e.Object, Path: "/ui/artifacts/" + e.Object,
		Title: "An artifact was shared with anybody who has its link: " + data.Name,
		Text:  "The link ends at " + data.Until.UTC().Format(time.DateTime) + " UTC. Delete the artifact to end it sooner.",
	}
	out.To, err = deciders(tx, nil, policy.ReadArtifacts)
	return out, true, err
}
