package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/box/roots"
	"yardmaster/internal/box/worktree"
	"yardmaster/internal/client"
)

// Check is one thing that Examine has looked at.
type Check struct {
	OK   bool
	What string // what was found
	Then string // what to do about it; empty if OK
}

// Remote is a repository that somebody may read.
type Remote struct{ URL, Token string }

// examineWait limits each step of Examine.
const examineWait = 20 * time.Second

// Examine looks from this machine at what a box with an identity needs of its server:
// HTTPS, the bus, and git. It changes nothing. Git asks for the HEAD of a repository:
// of repo, if it is given, or else of one that nobody has, which the server refuses.
func Examine(ctx context.Context, id Identity, repo Remote) []Check {
	return []Check{examineHTTP(ctx, id.ServerURL), examineBus(ctx, id), examineGit(ctx, id, repo)}
}

// trustHint says how a machine is told of an authority.
const trustHint = "set SSL_CERT_FILE to a file with the certificate of the authority, in PEM, for the box and for this command"

func examineHTTP(ctx context.Context, server string) Check {
	ctx, cancel := context.WithTimeout(ctx, examineWait)
	defer cancel()
	var another *client.Problem
	switch _, err := (&client.Client{URL: server}).Clock(ctx); {
	case err == nil:
		return Check{OK: true, What: "box, server: " + server + " answers"}
	case errors.As(err, &another):
		return Check{What: fmt.Sprintf("box, server: %s does not answer as the server does: %s", server, err),
			Then: "is that the address of the server, and is nothing else before it?"}
	case strings.Contains(err.Error(), "certificate"):
		return Check{What: fmt.Sprintf("box, server: %s cannot be reached: %s", server, err), Then: trustHint}
	default:
		return Check{What: fmt.Sprintf("box, server: %s cannot be reached: %s", server, err),
			Then: "is the server running there, and is there a way to it?"}
	}
}

func examineBus(ctx context.Context, id Identity) Check {
	ctx, cancel := context.WithTimeout(ctx, examineWait)
	defer cancel()
	err, how := conn.Probe(ctx, id.NATSURL, id.Trust()), ", over TLS, with an authority that this machine trusts"
	switch {
	case err != nil && conn.IsForeign(err):
		return Check{What: "box, bus: " + err.Error(), Then: "a box that runs asks " + id.ServerURL +
			" by itself how the bus is known now; if this stays, that server is not the one of this bus, or somebody stands between"}
	case err != nil:
		return Check{What: fmt.Sprintf("box, bus: %s", err), Then: "let this machine connect to " + id.NATSURL +
			", which nats-listen and nats-url of the server say; a box that runs asks for it anew by itself"}
	case !id.Trust().TLS:
		how = ", in the clear"
	case id.NATSCA != "":
		how = ", over TLS, with the authority that the box knows (SHA-256 " + id.NATSCA + ")"
	}
	return Check{OK: true, What: "box, bus: " + id.NATSURL + " answers" + how}
}

func examineGit(ctx context.Context, id Identity, repo Remote) Check {
	ctx, cancel := context.WithTimeout(ctx, examineWait)
	defer cancel()
	authorities, remove, err := temporaryAuthorities()
	if err != nil {
		return Check{What: "box, git: " + err.Error(), Then: "correct SSL_CERT_FILE"}
	}
	defer remove()
	address, token := repo.URL, repo.Token
	if address == "" {
		address, token = id.ServerURL+"/git/doctor/doctor.git", id.RunToken.Value
	}
	err = worktree.LsRemote(ctx, address, token, authorities)
	switch refused := errors.Is(err, worktree.ErrAuth) || errors.Is(err, worktree.ErrMissing); {
	case err == nil:
		return Check{OK: true, What: "box, git: ls-remote reads " + address}
	case refused && repo.URL == "":
		return Check{OK: true, What: "box, git: ls-remote reaches " + id.ServerURL + ", which refuses a repository that does not exist, as it should"}
	case refused:
		return Check{What: "box, git: the server answers, and refuses " + repo.URL + " to your login",
			Then: "yardmaster repo view shows how it is connected"}
	}
	then := "git goes another way than the box: look at its proxy (HTTPS_PROXY, NO_PROXY) and at GIT_SSL_CAINFO"
	if strings.Contains(err.Error(), "certificate") {
		then = trustHint + "; GIT_SSL_CAINFO, if it is set, wins for git"
	}
	return Check{What: "box, git: " + strings.TrimPrefix(err.Error(), "worktree: "), Then: then}
}

// temporaryAuthorities is the file that a box would give to its git, or none. The caller
// removes it.
func temporaryAuthorities() (path string, remove func(), err error) {
	text, err := roots.Bundle()
	if err != nil || text == nil {
		return "", func() {}, err
	}
	dir, err := os.MkdirTemp("", "yardmaster-doctor-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, "authorities.pem")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return path, remove, nil
}
