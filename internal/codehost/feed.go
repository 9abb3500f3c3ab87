package codehost

import (
	"context"
	"errors"
	"net/url"
	"time"
)

// Failures of Feed.Accept.
var (
	ErrForged  = errors.New("the delivery is not signed with the secret of this App")
	ErrForeign = errors.New("the delivery is of another App or host")
)

// Feed is how a host tells what happens there. It is safe for concurrent use.
type Feed interface {
	// Accept checks the signature of a delivery. header answers a header of the request
	// by its name. It fails with ErrForged and ErrForeign.
	Accept(header func(name string) string, body []byte) (Delivery, error)
	// Events are what a delivery tells; none for a kind that means nothing here.
	Events(d Delivery) ([]Event, error)
	// Installations answers a page of the installations of the App, and the cursor of
	// the next page: "" after the last.
	Installations(ctx context.Context, cursor string) ([]Installation, string, error)
	// InstalledRepos answers a page of the repositories of an installation. It fails
	// with ErrNotInstallable.
	InstalledRepos(ctx context.Context, installation, cursor string) ([]RepoInfo, string, error)
	// Changed answers what has changed in a repository, and the new marks. It costs one
	// request that finds nothing new if the repository is unchanged.
	Changed(ctx context.Context, r Repo, m Marks) (Marks, []Event, error)
	// Redeliver asks the host to send the failed deliveries since a time again, each
	// once.
	Redeliver(ctx context.Context, since time.Time) (asked int, err error)
}

// GitAccess says where the git of a repository is at its host, for the relay. No box
// is ever told.
type GitAccess interface {
	// Upstream is the address of a repository for git clients, and the value of the
	// header Authorization, which is good until the time. write asks for a credential
	// that may push.
	Upstream(ctx context.Context, r Repo, write bool) (address *url.URL, authorization string, until time.Time, err error)
	// Renew forgets the credentials of a repository: the host has refused one.
	Renew(r Repo)
}
