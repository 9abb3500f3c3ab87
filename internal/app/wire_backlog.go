package app

import (
	"context"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/backlog"
	"yardmaster/internal/policy"
)

// wireBacklog files asks of the issues that are open at a repository's host.
// The built-in host keeps none.
func (a *App) wireBacklog(asks *ask.Service) *backlog.Service {
	return &backlog.Service{
		DB: a.db, Hub: a.hub, Logger: a.log,
		Issues: func(context.Context, backlog.Repo) ([]backlog.Issue, bool, error) { return nil, false, nil },
		File: func(tx *db.Tx, repoID, by string, i backlog.Issue) (bool, error) {
			person, _ := strings.CutPrefix(by, "user:")
			if person == by {
				person = ""
			}
			_, existing, err := asks.File(tx, ask.Filing{
				RepoIDs: []string{repoID}, Title: i.Title, Body: i.Body, Source: ask.FromBacklog, DedupeKey: i.Key, Room: ask.FromBacklog + ":" + repoID, By: by, RequestedBy: &person,
				Scopes: policy.Scopes(policy.WriteTasks),
			})
			return !existing, err
		},
	}
}
