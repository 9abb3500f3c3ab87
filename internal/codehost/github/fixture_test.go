package github

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
	peer "yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description"
)

const hostName = "github:peer"

// everything is what the App may have, the two switches included.
func everything() map[string]string {
	all := map[string]string{}
	for _, p := range Needed {
		all[p.Name] = p.Level
	}
	return all
}

// world is a peer with an App that is installed at acme, and the Host of the App.
type world struct {
	t        *testing.T
	peer     *peer.Server
	app      *peer.App
	org      *peer.Account
	ann, bob *peer.Account
	repo     *peer.Repo
	inst     *peer.Installation
	host     *Host
	shop     codehost.Repo
}

// free are Limits that nothing waits for.
type free struct{}

func (free) Take(context.Context, string, pace.Cost) error { return nil }
func (free) Note(string, pace.Note)                        {}

// newWorld makes a world with the repository acme/shop, its owner ann and bob, who may
// write.
func newWorld(t *testing.T, o peer.Options, change ...func(*Config)) *world {
	t.Helper()
	s := description.Serve(t, o)
	w := &world{t: t, peer: s, org: s.Org("acme"), ann: s.Person("ann"), bob: s.Person("bob")}
	w.ann.Join(w.org, "admin", false)
	w.repo = s.Repo("acme/shop", peer.NewRepo{Private: true, Files: map[string]string{
		"README.md": "# Shop\n", "cart.go": numbered(30), "docs/a b.md": "text\n",
	}})
	w.repo.Allow(w.bob, "write")
	w.app = s.NewApp(peer.NewApp{
		Name: "Yard Master", Permissions: everything(), Events: slices.Concat(administrationEvents, events),
		HookURL: "http://127.0.0.1:1/", Secret: "hush",
	})
	w.inst = w.app.Install(w.org)
	w.host = w.connect(change...)
	w.shop = codehost.Repo{Host: hostName, ID: number(w.repo.ID), Owner: "acme", Name: "shop"}
	return w
}

// connect makes another Host of the App, with a memory of its own.
func (w *world) connect(change ...func(*Config)) *Host {
	w.t.Helper()
	transport := &http.Transport{}
	cfg := Config{
		Name: hostName, Addresses: Addresses{Web: w.peer.Web, API: w.peer.API, GraphQL: w.peer.GraphQL},
		AppID: w.app.ID, Slug: w.app.Slug, Key: []byte(w.app.PEM()), Secrets: []string{"hush"}, Workflows: true, Administration: true,
		Folder: w.t.TempDir(), CloneURL: func(r codehost.Repo) string { return "http://relay/" + r.ID }, Now: w.peer.Now, Limits: free{},
		Transport: transport,
	}
	for _, c := range change {
		c(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { h.Close(); transport.CloseIdleConnections() })
	return h
}

// numbered are n lines of Go that differ.
func numbered(n int, changed ...int) string {
	text := ""
	for i := range n {
		line := "line " + number(int64(i+1))
		for _, c := range changed {
			if c == i+1 {
				line += " changed"
			}
		}
		text += line + "\n"
	}
	return text
}

// pull opens a pull request of bob, of a branch with one commit of files.
func (w *world) pull(branch string, files map[string]string) *peer.Pull {
	w.t.Helper()
	w.repo.Push(w.bob, branch, w.repo.Head("main"))
	w.repo.Commit(w.bob, branch, "Change "+branch, files)
	return w.repo.OpenPull(w.bob, peer.NewPull{Title: "Change " + branch, Head: branch, Base: "main", Body: "Why."})
}

// newUUID is a UUID of version 7 that was made at a time.
func newUUID(t *testing.T, at time.Time) string {
	t.Helper()
	u, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	ms := at.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	return u.String()
}
