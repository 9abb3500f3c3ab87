package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// shimPath is the path of the shim in a Bubblewrap sandbox.
const (
	shimPath = "/run/yardmaster/sandbox"
)

// insideID is the user id that an agent sees if the box runs as an ordinary user.
const insideID = 1000

// tempBytes is the default size limit of each folder for temporary files, which are
// in memory: enough for a large build, and less than most machines have.
const tempBytes = 1 << 30

// hostEtc lists the parts of /etc that tools need. The user database, the resolver
// and others are generated or absent.
var hostEtc = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/java-*", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/localtime", "/etc/mime.types", "/etc/os-release", "/etc/pki", "/etc/protocols", "/etc/python3*", "/etc/services",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf",
}

// systemDirs are folders that are links into /usr on most machines.
var systemDirs = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// agentID returns the user id inside. A root box runs the agent as a real
// unprivileged user; the box of an ordinary user maps its user to insideID.
func agentID() int {
	if Separate() {
		return nobody
	}
	return insideID
}

// bubblewrap returns the command that runs self as the shim in new namespaces. The
// shim is process 1 there: the agent cannot signal it, and all processes end with
// it. The orders and the answer use descriptors 3 and 4.
func bubblewrap(l *launch, self string) (*exec.Cmd, error) {
	bwrap, err := findLauncher()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(bwrap.path)
	id := strconv.Itoa(agentID())
	args := []string{
		"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
		"--hostname", "box", "--die-with-parent", "--new-session", "--as-pid-1",
	}
	if Separate() {
		// The shim keeps the capabilities that it needs to become the unprivileged
		// user.
		if user := bwrap.namespace(self); user != nil {
			args = append(args, "--userns", inherit(cmd, user))
		}
		args = append(args, "--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_KILL")
	} else {
		args = append(args, "--unshare-user", "--uid", id, "--gid", id)
		if bwrap.can("--disable-userns") {
			args = append(args, "--disable-userns")
		}
	}
	// Bubblewrap makes missing parents accessible only to the user who makes the
	// sandbox.
	for _, dir := range parents("/etc/ssl/certs", HomeDir, shimPath, "/var/tmp") {
		args = append(args, "--perms", "0755", "--dir", dir)
	}
	args = append(args, "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/opt", "/opt", "--ro-bind-try", "/nix/store", "/nix/store")
	for _, dir := range systemDirs {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else {
			args = append(args, "--ro-bind-try", dir, dir)
		}
	}
	for _, pattern := range hostEtc {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		for _, f := range found {
			args = append(args, "--ro-bind-try", f, f)
		}
	}
	for _, f := range []struct{ path, text string }{
		{"/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nagent:x:" + id + ":" + id + ":agent:" + HomeDir + ":/bin/sh\n"},
		{"/etc/group", "root:x:0:\nagent:x:" + id + ":\n"},
		{"/etc/hosts", "127.0.0.1 localhost box\n::1 localhost\n"},
		{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"},
		{"/etc/resolv.conf", "# no network\n"},
	} {
		w, r, err := l.pipe(true)
		if err != nil {
			return nil, err
		}
		_, err = w.WriteString(f.text) // far smaller than a pipe's buffer
		if w.Close(); err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		args = append(args, "--perms", "0444", "--file", inherit(cmd, r), f.path)
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	args = append(args, memoryFolders(bwrap, l.spec.Limits)...)
	args = append(args, "--bind", l.spec.Task, TaskDir, "--bind", l.spec.Home, HomeDir, "--ro-bind", self, shimPath)
	for i, f := range l.spec.Forward {
		args = append(args, "--ro-bind", f.Socket, socketPath+strconv.Itoa(i))
	}
	// An outer folder comes first, because it would cover an inner one that was
	// shown before.
	for _, dir := range parents(append(slices.Clone(l.spec.ReadOnly), l.spec.Writable...)...) {
		args = append(args, "--perms", "0755", "--dir", dir)
	}
	for _, p := range slices.Sorted(slices.Values(l.spec.ReadOnly)) {
		args = append(args, "--ro-bind", p, p)
	}
	for _, p := range l.spec.Writable {
		args = append(args, "--bind", p, p)
	}
	args = append(args, "--remount-ro", "/", "--chdir", "/", "--", shimPath, Command)
	cmd.Args = append(cmd.Args, args...)
	return cmd, nil
}

// inherit passes a file to the command and returns its descriptor there.
func inherit(cmd *exec.Cmd, f *os.File) string {
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	return strconv.Itoa(answerFD + len(cmd.ExtraFiles))
}

// parents lists the folders above paths, outer ones first, without those that bind
// mounts bring.
func parents(paths ...string) []string {
	var out []string
	for _, p := range paths {
		for dir := filepath.Dir(p); dir != "/"; dir = filepath.Dir(dir) {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(dir string) bool {
		top, _, _ := strings.Cut(dir[1:], "/")
		return slices.Contains(systemDirs, "/"+top) || slices.Contains([]string{"usr", "opt"}, top)
	})
}
