package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/client"
	"yardmaster/internal/proxies"
)

// healthWait bounds the question, so that who asks regularly is not asked twice at a time.
const healthWait = 8 * time.Second

// askHealth asks a server whether requests should be sent to it. It succeeds if so, and needs no
// login.
func askHealth(ctx context.Context, address string) error {
	at, err := url.Parse(address)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" || at.User != nil || at.Path != "" && at.Path != "/" {
		return exit.Misused("--address wants that of a server, as http://127.0.0.1:8080")
	}
	server := at.Scheme + "://" + at.Host
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return err
	}
	proxies.SpareServer(ctx, server)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return &client.Unreachable{URL: server, Err: err}
	}
	defer resp.Body.Close()
	var is struct {
		Status string `json:"status"`
		Checks map[string]struct {
			Status string  `json:"status"`
			Detail *string `json:"detail"`
		} `json:"checks"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&is); err != nil || is.Status == "" {
		return fmt.Errorf("what answers at %s is no Yardmaster: %s", server, resp.Status)
	}
	var wrong []string
	for name, c := range is.Checks {
		if c.Status != "ok" {
			detail := ""
			if c.Detail != nil {
				detail = " (" + *c.Detail + ")"
			}
			wrong = append(wrong, name+" is "+c.Status+detail)
		}
	}
	slices.Sort(wrong)
	text := client.Inert(fmt.Sprintf("%s is %s", server, is.Status))
	if len(wrong) > 0 {
		text += client.Inert(": " + strings.Join(wrong, ", "))
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(text)
	}
	fmt.Println(text)
	return nil
}
