package demo

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/child"
	"yardmaster/internal/client"
)

// machine is the demo's box, in a process of its own.
type machine struct {
	cmd  *exec.Cmd
	data string
	log  *os.File
	gone chan struct{} // closed when the process has ended
	bare bool          // the box isolates nothing
}

// startBox enrolls a box, and waits until it is online and has reported its
// capabilities.
func (d *demo) startBox(ctx context.Context, c *client.Client) (*machine, error) {
	var minted struct {
		Token string `json:"token"`
	}
	if err := c.Call(ctx, http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": "demo-box"}, &minted); err != nil {
		return nil, err
	}
	b := &machine{data: filepath.Join(d.Data, "box"), gone: make(chan struct{})}
	var err error
	if b.log, err = os.OpenFile(d.boxLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	b.cmd = exec.Command(d.Self, "box", "join", "--url", c.URL, "--data", b.data, "--name", "demo-box")
	b.cmd.Env = append(os.Environ(), "YARDMASTER_ENROLL_TOKEN="+minted.Token)
	b.cmd.Stdout, b.cmd.Stderr = b.log, b.log
	// Ctrl-C in the terminal goes to the demo, which stops the box itself. If the demo
	// is killed, the box ends as well.
	b.cmd.SysProcAttr = child.Group(syscall.SIGTERM)
	if err := child.Start(b.cmd, func(error) { close(b.gone) }); err != nil { // its exit status tells
		return nil, errors.Join(err, b.log.Close())
	}
	if err := d.awaitBox(ctx, c, b); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

func (d *demo) awaitBox(ctx context.Context, c *client.Client, b *machine) error {
	for {
		var p struct {
			Data []struct {
				Presence struct {
					Status string `json:"status"`
				} `json:"presence"`
				Isolation []string `json:"isolation"`
			} `json:"data"`
		}
		if err := c.Call(ctx, http.MethodGet, "/v1/runners", nil, &p); err != nil {
			return err
		}
		// The box is online with its first beat, and reports its capabilities a little later.
		if len(p.Data) == 1 && p.Data[0].Presence.Status == "online" && len(p.Data[0].Isolation) > 0 {
			levels := p.Data[0].Isolation
			d.step("Enrolled a box (process %d): online; isolation it offers: %s.", b.cmd.Process.Pid, strings.Join(levels, ", "))
			if work := box.WorkDir(b.data); work != "" {
				d.step("The box keeps the folders of its agents in %s.", work)
			}
			if b.bare = levels[0] == "none"; b.bare {
				d.step("Note: %s.", box.Unisolated())
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.gone:
			return d.boxEnded(b)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// boxEnded is the error of a box that has ended by itself: the last error in its log,
// if there is one.
func (d *demo) boxEnded(b *machine) error {
	const says = "yardmaster box join: "
	words := tail(d.boxLog(), 1, func(line string) bool { return strings.HasPrefix(line, says) })
	if len(words) == 0 {
		return errors.New("the box ended: " + b.cmd.ProcessState.String())
	}
	return errors.New("the box ended: " + strings.TrimPrefix(words[0], says))
}

// stop ends the box, first by a signal. It may be called more than once.
func (b *machine) stop() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.gone:
	case <-time.After(80 * time.Second): // it ends by itself before, whatever it cannot save
		_ = b.cmd.Process.Kill()
		<-b.gone
	}
	b.log.Close()
}
