package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	flag "github.com/spf13/pflag"

	"yardmaster/internal/cli/output"
	"yardmaster/internal/cli/screen"
	"yardmaster/internal/cli/signin"
	"yardmaster/internal/cli/tree"
	"yardmaster/internal/client"
)

func runGitHubSetup(ctx context.Context, _ []string) error {
	server, err := signin.ServerAt("")
	if err != nil {
		return err
	}
	c := client.Client{URL: server}
	if err := c.Call(ctx, http.MethodGet, "/readyz", nil, nil); err != nil {
		if gone, ok := errors.AsType[*client.Unreachable](err); ok {
			return gone
		}
	}
	fmt.Printf("Open %s/gh/setup in a browser, as the first user of the server: GitHub shows the App before it is made.\n",
		strings.TrimSuffix(server, "/"))
	return nil
}

func defineGitHubDeliveries(fl *flag.FlagSet) tree.Action {
	state := fl.String("state", "", "only those that are `STATE`: stored, applied, ignored or failed")
	o := &output.Flags{}
	o.Add(fl)
	return func(ctx context.Context, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		return listDeliveries(ctx, o, *state)
	}
}

func listDeliveries(ctx context.Context, o *output.Flags, state string) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	type delivery struct {
		GUID       string    `json:"guid"`
		Kind       string    `json:"kind"`
		State      string    `json:"state"`
		Tries      int       `json:"tries"`
		Error      *string   `json:"error"`
		ReceivedAt time.Time `json:"received_at"`
	}
	path := "/v1/admin/deliveries?per_page=200"
	if state != "" {
		path += "&filter=" + url.QueryEscape("state:"+state)
	}
	var page struct {
		Data       json.RawMessage `json:"data"`
		NextCursor *string         `json:"next_cursor"`
	}
	if err := c.Call(ctx, http.MethodGet, path, nil, &page); err != nil {
		return err
	}
	if page.NextCursor != nil {
		defer fmt.Fprintln(os.Stderr, "Older ones are not shown.")
	}
	if o.ForPrograms() {
		return o.Print(os.Stdout, page.Data)
	}
	var all []delivery
	if err := json.Unmarshal(page.Data, &all); err != nil {
		return err
	}
	var rows [][]string
	for _, d := range all {
		why := ""
		if d.Error != nil {
			why = *d.Error
		}
		rows = append(rows, []string{
			d.GUID, d.ReceivedAt.Local().Format(time.DateTime), d.Kind, d.State, fmt.Sprint(d.Tries), client.Inert(why),
		})
	}
	screen.Lines("GUID\tRECEIVED\tKIND\tSTATE\tTRIES\tERROR", rows)
	return nil
}

func runGitHubRedeliver(ctx context.Context, plain []string, o *output.Flags) error {
	c, err := signin.Connect()
	if err != nil {
		return err
	}
	var out struct {
		Replayed bool `json:"replayed"`
	}
	done, err := o.Answered(ctx, c, http.MethodPost, "/v1/admin/deliveries/"+url.PathEscape(plain[0])+"/replay", nil, &out)
	if done || err != nil {
		return err
	}
	if !out.Replayed {
		fmt.Println("It is to be applied anyway.")
	} else {
		fmt.Println("It is applied once more.")
	}
	fmt.Println("yardmaster github deliveries shows what became of it.")
	return nil
}
