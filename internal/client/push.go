package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// receivePack is the service of git that takes pushes.
const receivePack = "git-receive-pack"

// between runs in the place of the server's program and passes on what it and git say to each
// other, through two named pipes, of which it opens the one for the answers first. The path of the
// repository comes after it.
const between = `PATH=$PATH:/usr/bin:/bin; exec 3<"$YARDMASTER_ANSWERED" 4>"$YARDMASTER_PUSHED"; ` +
	`cat <&3 4>&- & exec cat >&4 3<&- 4>&-; :`

// push has git push to a repository of the server, which is at path, and answers what git says.
// The bytes go over HTTP here: git's own way there compares each ref that it names with all
// others, which takes longer than all else where there are thousands. head is the default branch
// of a repository that is new.
func (c *Client) push(ctx context.Context, part func(string), dir, path, head string, args ...string) (out string, err error) {
	refs, err := c.refs(ctx, path)
	if err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp("", "yardmaster-push-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	pushed, answered := filepath.Join(tmp, "pushed"), filepath.Join(tmp, "answered")
	if err := errors.Join(syscall.Mkfifo(pushed, 0o600), syscall.Mkfifo(answered, 0o600)); err != nil {
		return "", fmt.Errorf("make a pipe: %w", err)
	}
	to, err := os.OpenFile(answered, os.O_RDWR, 0) // to read as well, or it would wait for git
	if err != nil {
		return "", err
	}
	opened, done := make(chan struct{}), make(chan error, 1)
	go func() {
		defer to.Close()             // git hears no more
		from, err := os.Open(pushed) // waits for git
		close(opened)
		if err != nil {
			done <- err
			return
		}
		defer from.Close()
		done <- c.passOn(ctx, path, head, refs, from, to)
	}()
	cmd := gitCommand(ctx, dir, append([]string{
		"-c", "protocol.file.allow=always", "-c", "push.negotiate=false", "push", "--receive-pack=" + between, path}, args...)...)
	cmd.Env = append(cmd.Env, "YARDMASTER_PUSHED="+pushed, "YARDMASTER_ANSWERED="+answered)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it starts ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, failed := saying(ctx, part, cmd, "push")
	// Git may never have come so far that it opened the pipe.
	if hold, err := os.OpenFile(pushed, os.O_RDWR, 0); err == nil {
		<-opened
		hold.Close()
	}
	to.Close()
	if err := <-done; err != nil && failed != nil {
		return out, err
	}
	return out, failed
}

// refs are the refs of a repository of the server, as git reads them.
func (c *Client) refs(ctx context.Context, path string) ([]byte, error) {
	resp, err := c.send(ctx, http.MethodGet, path+"/info/refs?service="+receivePack, nil, c.basic())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	all, err := whole(resp.Body, c.limit())
	if err != nil {
		return nil, err
	}
	refs, ok := bytes.CutPrefix(all, []byte("001f# service="+receivePack+"\n0000"))
	// Git would wait for the end of what has none.
	for rest := refs; ok && len(rest) != 4; {
		n, err := strconv.ParseUint(string(rest[:min(4, len(rest))]), 16, 16)
		if ok = err == nil && n > 4 && int(n) <= len(rest); ok {
			rest = rest[n:]
		}
	}
	if !ok || !bytes.HasSuffix(refs, []byte("0000")) {
		return nil, fmt.Errorf("%s%s is not where pushes go", c.URL, path)
	}
	return refs, nil
}

// passOn gives git the refs of the server, the server what git pushes, and git the answer.
func (c *Client) passOn(ctx context.Context, path, head string, refs []byte, from io.Reader, to io.Writer) error {
	if _, err := to.Write(refs); err != nil {
		return err
	}
	body := bufio.NewReaderSize(from, 64<<10)
	if some, _ := body.Peek(5); len(some) < 5 { // the end, or the mark of it: git has nothing to push
		return nil
	}
	header := c.basic()
	header.Set("Content-Type", "application/x-"+receivePack+"-request")
	header.Set("Yardmaster-Default-Branch", head)
	resp, err := c.send(ctx, http.MethodPost, path+"/"+receivePack, body, header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(to, resp.Body)
	return err
}

// basic is the credential as git sends it.
func (c *Client) basic() http.Header {
	h := http.Header{}
	if c.Token != "" {
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("token:"+c.Token)))
	}
	return h
}

// plainly is the sentence with which the git host refuses; "" for another answer.
func plainly(resp *http.Response, path string, body []byte) string {
	if !strings.HasPrefix(path, "/git/") || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		return ""
	}
	line, _, _ := strings.Cut(string(body), "\n")
	return ": " + line
}
