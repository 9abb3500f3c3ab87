package github

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// wantsRaw tells whether the caller asks for a file's own bytes.
func (c *call) wantsRaw() bool { return strings.Contains(c.r.Header.Get("Accept"), "raw") }

// contents answers a file or a folder of a commit.
func (c *call) contents() (int, any) {
	r, path := c.repo(), strings.Trim(c.params["path"], "/")
	name := c.query("ref")
	if name == "" {
		name = r.branch
	}
	sha := r.resolve(name)
	if sha == "" {
		c.refuse(http.StatusNotFound, "No commit found for the ref %s", name)
	}
	mode, blob, size, inside := "040000", "", 0, []string{"ls-tree", "-l", "-z", sha}
	if path != "" {
		line := r.must("ls-tree", "-l", "-z", sha, "--", path)
		if line == "" {
			c.notFound()
		}
		mode, _, blob, size, _ = treeLine(line)
		inside = append(inside, "--", path+"/")
	}
	if mode == "040000" {
		all := []obj{}
		for one := range strings.SplitSeq(strings.TrimSuffix(r.must(inside...), "\x00"), "\x00") {
			mode, _, blob, size, p := treeLine(one)
			all = append(all, c.showEntry(r, name, p, mode, blob, size))
		}
		return http.StatusOK, all
	}
	text, _ := r.file(sha, path)
	if c.wantsRaw() {
		return http.StatusOK, rawText{"application/vnd.github.raw+json; charset=utf-8", text}
	}
	o := c.showEntry(r, name, path, mode, blob, size)
	o["encoding"] = "base64"
	o["content"] = folded(base64.StdEncoding.EncodeToString([]byte(text)))
	if size > 1<<20 {
		o["encoding"], o["content"] = "none", ""
	}
	return http.StatusOK, o
}

// folded breaks base64 into lines as GitHub does.
func folded(s string) string {
	var out strings.Builder
	for s != "" {
		n := min(60, len(s))
		out.WriteString(s[:n] + "\n")
		s = s[n:]
	}
	return out.String()
}

func treeLine(line string) (mode, kind, blob string, size int, path string) {
	head, path, _ := strings.Cut(strings.TrimSuffix(line, "\x00"), "\t")
	f := strings.Fields(head)
	size, _ = strconv.Atoi(f[3])
	return f[0], f[1], f[2], size, path
}

func (c *call) showEntry(r *Repo, ref, path, mode, blob string, size int) obj {
	kind := map[string]string{"040000": "dir", "120000": "symlink", "160000": "submodule"}[mode]
	git := "blobs"
	if kind == "" {
		kind = "file"
	}
	page := "blob"
	if kind == "dir" {
		git, page = "trees", "tree"
	}
	self := fmt.Sprintf("%s/contents/%s?ref=%s", c.at(r), path, ref)
	at, html := c.at(r)+"/git/"+git+"/"+blob, c.page(r)+"/"+page+"/"+ref+"/"+path
	o := obj{
		"type": kind, "size": size, "name": path[strings.LastIndex(path, "/")+1:], "path": path, "sha": blob, "url": self,
		"git_url": at, "html_url": html, "download_url": nil, "_links": obj{"self": self, "git": at, "html": html},
	}
	if kind == "file" {
		o["download_url"] = c.Web + "/raw/" + r.full() + "/" + ref + "/" + path
	}
	return o
}

// listCommits lists the commits of a branch, newest first.
func (c *call) listCommits() (int, any) {
	r := c.repo()
	name := c.query("sha")
	if name == "" {
		name = r.branch
	}
	if r.pushed.IsZero() {
		c.refuse(http.StatusConflict, "Git Repository is empty.")
	}
	sha := r.resolve(name)
	if sha == "" {
		c.notFound()
	}
	args := []string{"rev-list", sha}
	if path := c.query("path"); path != "" {
		args = append(args, "--", path)
	}
	all := strings.Fields(r.must(args...))
	return http.StatusOK, each(list(c, all), func(sha string) obj { return c.showCommit(r, sha) })
}

func (c *call) getCommit() (int, any) {
	r := c.repo()
	if r.pushed.IsZero() {
		c.refuse(http.StatusConflict, "Git Repository is empty.")
	}
	sha := r.resolve(c.params["ref"])
	if sha == "" {
		c.refuse(http.StatusUnprocessableEntity, "No commit found for SHA: %s", c.params["ref"])
	}
	o := c.showCommit(r, sha)
	var files []change
	if p := r.show(sha).parents; len(p) > 0 {
		files = r.diff(p[0], sha)
	}
	added, deleted := sums(files)
	o["stats"] = obj{"additions": added, "deletions": deleted, "total": added + deleted}
	o["files"] = each(files, func(f change) obj { return c.showFile(r, sha, f) })
	return http.StatusOK, o
}

func sums(files []change) (added, deleted int) {
	for _, f := range files {
		added, deleted = added+f.added, deleted+f.deleted
	}
	return added, deleted
}

// showFile is GitHub's "diff entry".
func (s *Server) showFile(r *Repo, sha string, f change) obj {
	o := obj{
		"sha": f.blob, "filename": f.path, "status": f.status, "additions": f.added, "deletions": f.deleted,
		"changes": f.added + f.deleted, "blob_url": s.page(r) + "/blob/" + sha + "/" + f.path,
		"raw_url": s.page(r) + "/raw/" + sha + "/" + f.path, "contents_url": s.at(r) + "/contents/" + f.path + "?ref=" + sha,
	}
	if f.patch != "" {
		o["patch"] = f.patch
	}
	if f.old != "" {
		o["previous_filename"] = f.old
	}
	return o
}

// compare compares two commits from their merge base on, with 300 files at most.
func (c *call) compare() (int, any) {
	r := c.repo()
	from, to, ok := strings.Cut(c.params["basehead"], "...")
	if !ok {
		c.notFound()
	}
	if _, name, fork := strings.Cut(to, ":"); fork {
		to = name
	}
	base, head := r.resolve(from), r.resolve(to)
	if base == "" || head == "" {
		c.notFound()
	}
	middle := r.mergeBase(base, head)
	if middle == "" {
		c.refuse(http.StatusNotFound, "No common ancestor between %s and %s.", from, to)
	}
	ahead, behind := r.count(base+".."+head), r.count(head+".."+base)
	status := "diverged"
	switch {
	case ahead == 0 && behind == 0:
		status = "identical"
	case behind == 0:
		status = "ahead"
	case ahead == 0:
		status = "behind"
	}
	files := r.diff(middle, head)
	page := c.page(r) + "/compare/" + c.params["basehead"]
	show := func(sha string) obj { return c.showCommit(r, sha) }
	return http.StatusOK, obj{
		"url": c.at(r) + "/compare/" + c.params["basehead"], "html_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"permalink_url": c.page(r) + "/compare/" + base[:7] + "..." + head[:7],
		"base_commit":   show(base), "merge_base_commit": show(middle), "status": status, "ahead_by": ahead, "behind_by": behind,
		"total_commits": ahead, "commits": each(list(c, r.commits(base+".."+head)), show),
		"files": each(files[:min(300, len(files))], func(f change) obj { return c.showFile(r, head, f) }),
	}
}
