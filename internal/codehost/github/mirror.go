package github

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
	"yardmaster/internal/lazy"
)

// oldFaults are what git finds wrong with objects of repositories that are older than
// its checks. They do no harm in a folder that nobody checks out.
var oldFaults = []string{
	"badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "duplicateEntries", "gitmodulesBlob", "gitmodulesLarge",
	"gitmodulesMissing", "gitmodulesName", "gitmodulesParse", "gitmodulesPath", "gitmodulesSymlink", "gitmodulesUpdate",
	"gitmodulesUrl", "missingEmail", "missingNameBeforeEmail", "missingSpaceBeforeDate", "missingSpaceBeforeEmail",
	"multipleAuthors", "zeroPaddedDate", "zeroPaddedFilemode",
}

// mirrorSettings are git's settings for all calls to a GitHub.
func mirrorSettings(web *url.URL, cfg Config) [][2]string {
	all := [][2]string{
		{"protocol.allow", "never"},
		{"protocol." + web.Scheme + ".allow", "always"},
		{"http.followRedirects", "false"}, // the credential would go along
		{"http.lowSpeedLimit", "1000"},
		{"http.lowSpeedTime", "60"},
		{"credential.helper", ""},
		{"fetch.fsckObjects", "true"},
		{"fetch.unpackLimit", "1"},
		{"fetch.recurseSubmodules", "false"},
		{"transfer.bundleURI", "false"},
	}
	for _, id := range oldFaults {
		all = append(all, [2]string{"fetch.fsck." + id, "warn"})
	}
	if cfg.CAFile != "" {
		all = append(all, [2]string{"http.sslCAInfo", cfg.CAFile})
	}
	return all
}

// mirror is the folder of one repository.
type mirror struct {
	making   sync.Mutex // held while the folder is looked for
	fetching sync.Mutex // held during a fetch
	dir      gitfolder.Folder
}

// mirror answers the mirror of a repository. It makes an empty folder if there is none.
func (h *Host) mirror(ctx context.Context, r codehost.Repo) (*mirror, error) {
	if _, err := strconv.ParseUint(r.ID, 10, 63); err != nil {
		return nil, codehost.ErrNotFound
	}
	found, _ := h.mirrors.LoadOrStore(r.ID, &mirror{dir: h.git.At(filepath.Join(h.cfg.Folder, r.ID+".git"), r.String())})
	m := found.(*mirror)
	m.making.Lock()
	defer m.making.Unlock()
	if info, err := os.Stat(m.dir.Path()); err == nil {
		if now := h.cfg.Now(); now.Sub(info.ModTime()) > time.Hour {
			_ = os.Chtimes(m.dir.Path(), now, now) // for Upkeep
		}
		return m, nil
	}
	made, err := h.git.Init(ctx, "main")
	if err != nil {
		return nil, fmt.Errorf("make a mirror of %s: %w", r, err)
	}
	defer os.RemoveAll(made)
	if err := os.Rename(made, m.dir.Path()); err != nil {
		return nil, fmt.Errorf("make a mirror of %s: %w", r, err)
	}
	return m, nil
}

// Upkeep packs the mirrors, and removes those that were not used since a time. Another
// node may share the folder.
func (h *Host) Upkeep(ctx context.Context, now, unused time.Time) error {
	entries, err := os.ReadDir(h.cfg.Folder)
	if err != nil {
		return fmt.Errorf("upkeep of mirrors: %w", err)
	}
	var failed error
	for _, e := range entries {
		id, is := strings.CutSuffix(e.Name(), ".git")
		info, err := e.Info()
		if !is || err != nil || ctx.Err() != nil {
			continue
		}
		if info.ModTime().Before(unused) {
			failed = errors.Join(failed, h.dropMirror(id))
		} else {
			failed = errors.Join(failed, h.git.At(filepath.Join(h.cfg.Folder, e.Name()), id).Maintain(ctx, now))
		}
	}
	return failed
}

// dropMirror removes a mirror: first its name, so that no half of it is ever read.
func (h *Host) dropMirror(id string) error {
	path := filepath.Join(h.cfg.Folder, id+".git")
	gone := filepath.Join(h.cfg.Folder, ".gone-"+id)
	if err := os.Rename(path, gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the mirror %s: %w", id, err)
	}
	return os.RemoveAll(gone)
}

// at answers the mirror of a repository, and the commits of revs, which the mirror has.
func (h *Host) at(ctx context.Context, r codehost.Repo, revs ...string) (gitfolder.Folder, []string, error) {
	shas := make([]string, len(revs))
	for i, rev := range revs {
		sha, err := h.commitOf(ctx, r, rev)
		if err != nil {
			return gitfolder.Folder{}, nil, err
		}
		shas[i] = sha
	}
	m, err := h.mirror(ctx, r)
	if err != nil {
		return gitfolder.Folder{}, nil, err
	}
	return m.dir, shas, h.fetch(ctx, r, m, shas)
}

// commitOf is the commit of a rev; a tag or commit by its SHA is answered as it is.
func (h *Host) commitOf(ctx context.Context, r codehost.Repo, rev string) (string, error) {
	if err := h.ours(r); err != nil {
		return "", err
	}
	branch, isBranch := strings.CutPrefix(rev, "refs/heads/")
	switch {
	case codehost.ValidSHA(rev):
		return rev, nil
	case rev == "HEAD":
		info, err := h.Info(ctx, r)
		if err == nil && info.HeadSHA == "" {
			err = codehost.ErrNotFound
		}
		return info.HeadSHA, err
	case isBranch, codehost.ValidBranch(rev):
		return h.Head(ctx, r, branch)
	case codehost.ValidRef(rev):
		return h.ref(ctx, r, strings.TrimPrefix(rev, "refs/"))
	}
	return "", codehost.ErrNotFound
}

// missing tells whether the mirror lacks one of some commits.
func missing(ctx context.Context, dir gitfolder.Folder, shas []string) (bool, error) {
	if len(shas) == 0 {
		return false, nil
	}
	has, err := dir.Has(ctx, shas...)
	return !has, err
}

// fetch makes the mirror have commits. The first fetch of a large repository may take
// longer than its caller waits: it goes on, and the next caller finds what it has
// brought. It fails with codehost.ErrNotFound if GitHub has no such commit.
func (h *Host) fetch(ctx context.Context, r codehost.Repo, m *mirror, shas []string) error {
	if lacks, err := missing(ctx, m.dir, shas); !lacks || err != nil {
		return err
	}
	return h.background(ctx, func(ctx context.Context) error { return h.fetchNow(ctx, r, m, shas) })
}

// background waits for work that goes on when its caller has gone, until it has taken
// gitfolder.MaxTime or the host is closed.
func (h *Host) background(ctx context.Context, do func(context.Context) error) error {
	done := make(chan error, 1)
	on, cancel := context.WithTimeout(context.WithoutCancel(ctx), gitfolder.MaxTime)
	h.work.Go(func() {
		defer cancel()
		defer context.AfterFunc(h.alive, cancel)()
		done <- do(on)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fetchNow fetches all branches, and then what none of them has, such as the head of a
// pull request from a fork.
func (h *Host) fetchNow(ctx context.Context, r codehost.Repo, m *mirror, shas []string) error {
	m.fetching.Lock()
	defer m.fetching.Unlock()
	if lacks, err := missing(ctx, m.dir, shas); !lacks || err != nil {
		return err // another caller has fetched it
	}
	if err := h.fetchRefs(ctx, r, m.dir, "+refs/heads/*:refs/heads/*"); err != nil {
		return err
	}
	var wanted []string
	for _, sha := range slices.Compact(slices.Sorted(slices.Values(shas))) {
		lacks, err := missing(ctx, m.dir, []string{sha})
		if err != nil {
			return err
		}
		if lacks {
			wanted = append(wanted, "+"+sha+":refs/wanted/"+sha)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return h.fetchRefs(ctx, r, m.dir, wanted...)
}

// fetchRefs fetches refs into the mirror.
func (h *Host) fetchRefs(ctx context.Context, r codehost.Repo, dir gitfolder.Folder, refs ...string) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"}
	if strings.HasPrefix(refs[0], "+refs/heads/") {
		args = append(args, "--prune")
	}
	_, err := h.remote(ctx, r, dir, false, func(address string) []string { return slices.Concat(args, []string{address}, refs) })
	if err != nil {
		return fmt.Errorf("fetch %s: %w", r, err)
	}
	return nil
}

// remote runs git with a credential for the repository at GitHub, which is in the
// environment of the process alone. It asks for a new credential and for the present
// name of the repository once each if GitHub refuses the one it has.
func (h *Host) remote(
	ctx context.Context, r codehost.Repo, dir gitfolder.Folder, write bool, args func(address string) []string,
) (string, error) {
	renewed, renamed := false, false
	for {
		address, authorization, _, err := h.Upstream(ctx, r, write)
		if err != nil {
			return "", err
		}
		out, err := dir.With([2]string{"http." + h.cfg.Addresses.Web + "/.extraHeader", "Authorization: " + authorization}).
			Output(ctx, args(address.String())...)
		var e *gitfolder.ExitError
		if err == nil || !errors.As(err, &e) {
			return out, err
		}
		failure := h.gitFailure(err, out)
		switch {
		case errors.Is(failure, errUnauthorized) && !renewed:
			renewed = true
			h.Renew(r)
			continue
		case errors.Is(failure, errMoved) && !renamed:
			renamed = true
			if _, other, err := h.rename(ctx, r); err != nil {
				return out, err
			} else if other {
				continue
			}
			failure = codehost.ErrNotFound.Because(failure)
		case errors.Is(failure, errUnauthorized):
			failure = &codehost.BusyError{Cause: failure}
		case errors.Is(failure, errMoved):
			failure = codehost.ErrNotFound.Because(failure)
		}
		return out, failure
	}
}

var httpStatus = lazy.New(`returned error: (\d{3})`)

// gitFailure says what a failed fetch or push means. out is what git printed beside its
// errors.
func (h *Host) gitFailure(err error, out string) error {
	said := err.Error() + "\n" + out
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(said, t) })
	}
	status := ""
	if m := httpStatus.FindStringSubmatch(said); m != nil {
		status = m[1]
	}
	switch {
	case has("not our ref", "unadvertised object", "couldn't find remote ref"):
		return codehost.ErrNotFound.Because(err)
	case has("without `workflows` permission"):
		return errors.Join(&codehost.ForbiddenError{Permission: "workflows: write"}, err)
	case has("archived so it is read-only", "was archived"):
		return codehost.ErrGone.Because(err)
	case has("stale info", "fetch first", "non-fast-forward", "cannot lock ref", "reference already exists"):
		return codehost.ErrHeadMoved.Because(err)
	case has("fsck error", "bad object", "inflate: data stream error"):
		return fmt.Errorf("the repository has objects that git refuses: %w", err) // at each try
	case has("GH006", "GH013", "protected branch", "[remote rejected]"):
		return errors.Join(&codehost.BlockedError{Missing: rejections(out)}, err)
	case status == "401", has("Authentication failed", "could not read Username"):
		return fmt.Errorf("%w: %w", errUnauthorized, err)
	case status == "403":
		return errors.Join(&codehost.ForbiddenError{}, err)
	case strings.HasPrefix(status, "3"), status == "404", has("repository '", "' not found"):
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return &codehost.BusyError{Cause: err}
}

// rejections are the reasons of a push with --porcelain.
func rejections(out string) (all []string) {
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 && f[0] == "!" {
			all = append(all, f[2])
		}
	}
	return all
}
