package github

import (
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/hosttest"
	peer "yardmaster/internal/proof/github"
)

// TestHost holds that GitHub does what every code host does.
func TestHost(t *testing.T) {
	t.Parallel()
	hosttest.Run(t, func(t *testing.T) hosttest.Site {
		w := newWorld(t, peer.Options{})
		repo := w.peer.Repo("acme/empty", peer.NewRepo{Private: true})
		remote := strings.Replace(repo.CloneURL(), "://", "://x-access-token:"+w.inst.Token()+"@", 1)
		return hosttest.Site{
			Host: w.host, Repo: codehost.Repo{Host: hostName, ID: number(repo.ID), Owner: "acme", Name: "empty"}, Remote: remote,
			Pull: func(t *testing.T, head, base string) int64 {
				return int64(repo.OpenPull(w.ann, peer.NewPull{Head: head, Base: base}).Number)
			},
		}
	})
}
