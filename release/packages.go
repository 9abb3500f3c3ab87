package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // a kind of package
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // another
)

const (
	summary = "control plane and boxes for AI developer agents"
	about   = summary + "\n" +
		"One program: serve is the control plane with its API, git host, message bus\n" +
		"and model gateway; box runs agents in a sandbox; the rest is a command line."
)

// packages makes the deb and the rpm of a target. They differ in where units lie.
func (r *release) packages(b built) error {
	for kind, units := range map[string]string{"deb": "/lib/systemd/system/", "rpm": "/usr/lib/systemd/system/"} {
		if err := r.pack(b, kind, units); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

func (r *release) pack(b built, kind, units string) error {
	contents, err := r.contents(b, kind, units)
	if err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(r.files(), name) }
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "yardmaster", Arch: b.machine, Platform: "linux", Version: r.number(), VersionSchema: "semver", Release: "1",
		Section: "devel", Priority: "optional", Maintainer: "Yardmaster <release@example.com>", Vendor: "Yardmaster",
		Homepage: "https://example.com/yardmaster", License: "Apache-2.0", MTime: r.at, Description: about,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Depends:  []string{"git"},
			// Without bubblewrap a box has a weaker sandbox; a server needs none.
			Recommends: []string{"bubblewrap", "ca-certificates"},
			Scripts:    nfpm.Scripts{PostInstall: in("postinst.sh"), PreRemove: in("prerm.sh"), PostRemove: in("postrm.sh")},
			Deb:        nfpm.Deb{Compression: "gzip"}, // xz takes minutes, and lintian knows no zstd
			RPM: nfpm.RPM{Compression: "zstd", BuildHost: "localhost", Group: "Development/Tools",
				Summary: strings.ToUpper(summary[:1]) + summary[1:]},
		},
	})
	if err := nfpm.PrepareForPackager(info, kind); err != nil {
		return err
	}
	packager, err := nfpm.Get(kind)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := packager.Package(info, &out); err != nil {
		return err
	}
	return r.put(packager.ConventionalFileName(info), out.Bytes())
}

// contents are the files of a package. Owner, mode and time are said of each: those of the
// builder's files are taken otherwise.
func (r *release) contents(b built, kind, units string) (out files.Contents, err error) {
	add := func(from, to string, mode os.FileMode) {
		c := &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.at}}
		if kind == "rpm" && (strings.HasPrefix(to, "/usr/share/doc/") || strings.HasPrefix(to, "/usr/share/man/")) {
			c.Type = files.TypeRPMDoc // a deb would leave it out
		}
		out = append(out, c)
	}
	in := func(name string) string { return filepath.Join(r.files(), name) }
	add(b.program, "/usr/bin/yardmaster", 0o755)
	add(in("yardmaster.service"), units+"yardmaster.service", 0o644)
	add(in("yardmaster-box.service"), units+"yardmaster-box.service", 0o644)
	add(in("yardmaster.sysusers"), "/usr/lib/sysusers.d/yardmaster.conf", 0o644)
	for _, name := range []string{"yardmaster.yaml.example", "copyright"} {
		add(in(name), "/usr/share/doc/yardmaster/"+name, 0o644)
	}
	written := map[string][]byte{"/usr/share/doc/yardmaster/LICENSES.txt": b.terms, "/usr/share/doc/yardmaster/yardmaster.cdx.json": b.bill}
	for name, page := range b.manual {
		written["/usr/share/man/man1/"+name] = page
	}
	if kind == "deb" {
		add(in("lintian-overrides"), "/usr/share/lintian/overrides/yardmaster", 0o644)
		if written["/usr/share/doc/yardmaster/changelog.Debian.gz"], err = zipped([]byte(r.changelog())); err != nil {
			return nil, err
		}
	}
	for _, to := range slices.Sorted(maps.Keys(written)) {
		from := filepath.Join(b.folder, "packed-"+filepath.Base(to))
		if err := os.WriteFile(from, written[to], 0o644); err != nil {
			return nil, err
		}
		add(from, to, 0o644)
	}
	folder := &files.ContentFileInfo{Owner: "root", Group: "root", Mode: 0o755, MTime: r.at}
	return append(out, &files.Content{Destination: "/etc/yardmaster", Type: files.TypeDir, FileInfo: folder}), nil
}

// changelog is what Debian wants of a package. What has changed is in the repository.
func (r *release) changelog() string {
	return fmt.Sprintf("yardmaster (%s-1) stable; urgency=medium\n\n  * Release %s, from commit %.12s.\n\n -- Yardmaster <release@example.com>  %s\n",
		strings.ReplaceAll(r.number(), "-", "~"), r.version, r.commit, r.at.Format(time.RFC1123Z))
}
