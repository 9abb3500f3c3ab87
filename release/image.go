package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody else has this number. It is no name, since a kubelet refuses names under runAsNonRoot.
const user = 65532

var kinds = []string{"server", "box"}

// baseOf is the tar of what lies below the program in an image.
func baseOf(folder, kind, machine string) string {
	return filepath.Join(folder, kind+"-"+machine+".tar")
}

// below refuses a folder that lacks one of the bases, before anything is built.
func below(folder string, targets []string) error {
	for _, target := range targets {
		machine, linux := strings.CutPrefix(target, "linux/")
		for _, kind := range kinds {
			if folder == "" || !linux {
				continue
			}
			if _, err := os.Stat(baseOf(folder, kind, machine)); err != nil {
				return fmt.Errorf("no image can be made for %s, as scripts/image-bases has not been run for it: %w", target, err)
			}
		}
	}
	return nil
}

// image puts the program on packages of Debian, which are in a tar, and writes what `docker load`
// reads. No daemon is asked.
func (r *release) image(b built, kind, base string) error {
	below, err := tarball.LayerFromFile(base, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return err
	}
	own, err := r.layer(b, kind)
	if err != nil {
		return err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.at}
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: below, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "packages of Debian"}},
		mutate.Addendum{Layer: own, MediaType: types.OCILayer, History: v1.History{Created: created, CreatedBy: "yardmaster " + r.version}})
	if err != nil {
		return err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created, config.Config = b.machine, "linux", created, r.config(kind)
	if img, err = mutate.ConfigFile(img, config); err != nil {
		return err
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	tag, err := name.NewTag("yardmaster-"+kind+":"+r.number(), name.WithDefaultRegistry(""))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := tarball.Write(tag, img, &out); err != nil {
		return err
	}
	fmt.Printf("image of the %s for %s: %s\n", kind, b.machine, digest)
	return r.put(fmt.Sprintf("yardmaster-%s_%s_%s.image.tar", kind, r.number(), b.machine), out.Bytes())
}

func (r *release) config(kind string) v1.Config {
	c := v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/data", Volumes: map[string]struct{}{"/data": {}},
		Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/data"},
		Entrypoint: []string{"/usr/bin/yardmaster"}, StopSignal: "SIGTERM",
		Cmd: []string{"box", "run", "--data", "/data"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "yardmaster " + kind,
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.created":  r.at.Format(time.RFC3339),
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if kind == "server" {
		c.Cmd = []string{"serve", "--data", "/data", "--listen", "0.0.0.0:8080", "--nats-listen", "0.0.0.0:4222"}
		c.ExposedPorts = map[string]struct{}{"8080/tcp": {}, "4222/tcp": {}}
		c.Healthcheck = &v1.HealthConfig{Test: []string{"CMD", "yardmaster", "doctor", "--address", "http://127.0.0.1:8080"},
			Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: time.Minute}
	}
	return c
}

// layer is what lies on the packages: the program, its terms, its user, and a folder which that user
// may write, so that a volume that is mounted there becomes theirs.
func (r *release) layer(b built, kind string) (v1.Layer, error) {
	program, err := os.ReadFile(b.program)
	if err != nil {
		return nil, err
	}
	tree := []entry{
		{name: "data/", mode: 0o700, owner: user},
		{name: "usr/bin/yardmaster", mode: 0o755, content: program},
		{name: "usr/share/doc/yardmaster/LICENSES.txt", mode: 0o644, content: b.terms},
	}
	if kind == "server" { // no script of a package has run below it
		tree = append(tree,
			entry{name: "etc/passwd", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:0:root:/root:/usr/sbin/nologin\n"+
				"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nyardmaster:x:%d:%[1]d:Yardmaster:/data:/usr/sbin/nologin\n", user)},
			entry{name: "etc/group", mode: 0o644, content: fmt.Appendf(nil, "root:x:0:\nnogroup:x:65534:\nyardmaster:x:%d:\n", user)},
			entry{name: "tmp/", mode: 0o1777})
	}
	plain, err := packed(tree, r.at)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(plain)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}
