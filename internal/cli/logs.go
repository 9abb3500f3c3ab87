package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

// defineCheckLog prints the output of a check.
func defineCheckLog(fl *flag.FlagSet) tree.Action {
	only := fl.Bool("url", false, "print the address of the output, which is good for five minutes")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, plain []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		c, err := signin.Connect()
		if err != nil {
			return err
		}
		b, err := c.Fetch(ctx, http.MethodGet, "/v1/ci/runs/"+url.PathEscape(plain[0])+"/log-url", nil)
		if err != nil {
			return err
		}
		v, _ := object.Decode(b)
		at := object.Text(object.Map(v)["url"])
		switch {
		case o.ForPrograms():
			return o.Print(os.Stdout, b)
		case *only:
			fmt.Println(client.Inert(at))
			return nil
		}
		return screen.Paging(func() error { return printLog(ctx, c, at) })
	}
}

// printLog prints what is at an address that the server has given, line by line.
func printLog(ctx context.Context, c *client.Client, at string) error {
	if strings.HasPrefix(at, "/") {
		at = c.URL + at
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req) // without the token: the address is enough
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the output is not there: %s", resp.Status)
	}
	return escapedLines(resp.Body)
}

// escapedLines copies a text to standard output without what controls a terminal.
func escapedLines(from io.Reader) error {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			if _, err := fmt.Println(client.Escape(strings.TrimRight(line, "\r\n"))); err != nil {
				return err
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// runSessionExport prints what happened in a session.
func runSessionExport(ctx context.Context, plain []string) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	b, err := c.Fetch(ctx, http.MethodGet, "/v1/sessions/"+url.PathEscape(plain[0])+"/events.jsonl", nil)
	if err != nil {
		return err
	}
	return escapedLines(strings.NewReader(string(b)))
}

// pickRun has a person choose a run that goes on, by its task.
func pickRun(ctx context.Context, prompt, _ string) (string, error) {
	row, err := noun.Called("task").Choose(ctx, prompt, "", nil, func(row map[string]any) bool {
		return row["run_id"] != nil && (row["status"] == "running" || row["status"] == "claimed" || row["status"] == "fixing_ci")
	})
	return object.Text(row["run_id"]), err
}
