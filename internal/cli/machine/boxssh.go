package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// sshJoins is the path of the machines that the server enrolls over SSH.
const sshJoins = "/v1/runners/enrollments/ssh"

// sshJoin is such a machine.
type sshJoin struct {
	ID     string  `json:"id"`
	State  string  `json:"state"`
	Reason *string `json:"reason"`
	Detail *string `json:"detail"`
	Output string  `json:"output"`
	BoxID  *string `json:"box_id"`
	Seen   *struct {
		Fingerprint string `json:"fingerprint"`
	} `json:"seen"`
}

// BoxAdd has the server enroll a machine over SSH.
func BoxAdd(fl *flag.FlagSet) tree.Action {
	at := fl.String("ssh", "", "the machine, as user@host or user@host:port")
	key := fl.String("host-key", "", "its host key: the fingerprint (SHA256:…), or its line of known_hosts; without it the key is shown and nothing is run")
	name := fl.String("name", "", "name of the box; the host's when empty")
	slots := fl.Int("slots", 0, "most runs it may take at once; what it offers when 0")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		body, err := sshPlace(*at)
		if err != nil {
			return err
		}
		if *key != "" {
			body["host_key"] = *key
		}
		if *name != "" {
			body["name"] = *name
		}
		if *slots != 0 {
			body["slots"] = *slots
		}
		return addOverSSH(ctx, o, body, *at)
	}
}

// sshPlace reads user@host and user@host:port.
func sshPlace(at string) (map[string]any, error) {
	user, host, ok := strings.Cut(at, "@")
	if !ok || user == "" || host == "" {
		return nil, exit.Misuse("say which machine with --ssh user@host")
	}
	body := map[string]any{"user": user, "host": strings.Trim(host, "[]")}
	if h, p, err := net.SplitHostPort(host); err == nil {
		port, err := strconv.Atoi(p)
		if err != nil {
			return nil, exit.Misused("%q is no port", client.Inert(p))
		}
		body["host"], body["port"] = h, port
	}
	return body, nil
}

func addOverSSH(ctx context.Context, o *output.Flags, body map[string]any, at string) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	b, err := c.Fetch(ctx, http.MethodPost, sshJoins, body)
	if err != nil {
		return err
	}
	var j sshJoin
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	people := io.Writer(os.Stdout) // what is said to them
	if o.ForPrograms() {
		people = os.Stderr
	}
	fmt.Fprintf(people, "The server calls %s.\n", client.Inert(at))
	for j.State != "joined" && j.State != "failed" {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		var p struct {
			Data []json.RawMessage `json:"data"`
		}
		if err := c.Call(ctx, http.MethodGet, sshJoins+"?filter="+url.QueryEscape("id:"+j.ID), nil, &p); err != nil {
			return err
		}
		if len(p.Data) != 1 {
			return fmt.Errorf("the server knows nothing of the machine any more")
		}
		b, j = p.Data[0], sshJoin{}
		if err := json.Unmarshal(b, &j); err != nil {
			return err
		}
	}
	if o.ForPrograms() {
		if err := o.Print(os.Stdout, b); err != nil {
			return err
		}
	}
	return j.told(people, at)
}

// told says how it went.
func (j sshJoin) told(w io.Writer, at string) error {
	if j.Output != "" {
		fmt.Fprintln(w, client.Inert(j.Output))
	}
	if j.State == "joined" && j.BoxID != nil {
		fmt.Fprintf(w, "It is a box now.\nNext: yardmaster box view %s\n", client.Inert(*j.BoxID))
		return nil
	}
	why := "it failed"
	if j.Detail != nil {
		why = client.Inert(*j.Detail)
	}
	if j.Seen != nil {
		return fmt.Errorf("%s\nThe machine has %s (on it: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub).\n"+
			"If it is that: yardmaster box add --ssh %s --host-key %s", why, client.Inert(j.Seen.Fingerprint), client.Inert(at),
			client.Inert(j.Seen.Fingerprint))
	}
	if j.Reason != nil && *j.Reason == "login_refused" {
		return fmt.Errorf("%s\nThe line for it: yardmaster box ssh-key", why)
	}
	return fmt.Errorf("%s", why)
}
