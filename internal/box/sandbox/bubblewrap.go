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

// The shim and the forwarded sockets inside a Bubblewrap sandbox.
const (
	shimPath   = "/run/yardmaster/sandbox"
	socketPath = "/run/yardmaster/forward-"
)

// insideID is the user that an agent of an ordinary user's box believes to be.
const insideID = 1000

// tempBytes is how much each folder for temporary files can hold, which is in
// memory, where nothing else is said: room for the largest build of a day, and not all that the machine has.
const tempBytes = 1 << 30

// hostEtc is what of /etc tools need to run; the user database, the resolver
// and the rest are made up or absent.
var hostEtc = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/java-*", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	"/etc/localtime", "/etc/mime.types", "/etc/os-release", "/etc/pki", "/etc/protocols", "/etc/python3*", "/etc/services",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf",
}

// systemDirs are links into /usr on most machines.
var systemDirs = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// agentID is the user inside: a root box makes the agent a real unprivileged
// user, an ordinary user's box maps that user to an ordinary one.
func agentID() int {
	if Separate() {
		return nobody
	}
	return insideID
}

// bubblewrap makes the command that runs self as the shim in namespaces of its
// own. The shim is process 1 there: the agent cannot signal it, and with it
// everything ends. The orders and the answer take descriptors 3 and 4.
func bubblewrap(l *launch, self string) (*exec.Cmd, error) {
	bwrap, err := findLauncher()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(bwrap.path)
	id := strconv.Itoa(agentID())
	args := []string{"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
		"--hostname", "box", "--die-with-parent", "--new-session", "--as-pid-1"}
	if Separate() {
		// The shim keeps what it takes to become the unprivileged user.
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
	// Bubblewrap makes missing parents private to the user who sets the sandbox up.
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
		_, err = w.WriteString(f.text) // far below what a pipe holds
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
	// An outer folder first, or it would cover what was shown inside it.
	for _, dir := range parents(l.spec.ReadOnly...) {
		args = append(args, "--perms", "0755", "--dir", dir)
	}
	for _, p := range slices.Sorted(slices.Values(l.spec.ReadOnly)) {
		args = append(args, "--ro-bind", p, p)
	}
	args = append(args, "--remount-ro", "/", "--chdir", "/", "--", shimPath, Command)
	cmd.Args = append(cmd.Args, args...)
	return cmd, nil
}

// inherit passes a file on and answers its number there.
func inherit(cmd *exec.Cmd, f *os.File) string {
	cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	return strconv.Itoa(answerFD + len(cmd.ExtraFiles))
}

// parents lists the folders above paths, outer ones first, but for those that
// bind mounts bring.
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
