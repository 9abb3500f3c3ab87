package client

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"
)

// Approval tells a person how to approve the sign-in of a command line in a
// browser.
type Approval struct {
	UserCode string `json:"user_code"`
	URI      string `json:"verification_uri"`
	Complete string `json:"verification_uri_complete"` // the address with the code filled in
}

// SignInByDevice obtains a token for the client without a password (RFC 8628): show
// tells a person where to approve, and SignInByDevice waits for the approval.
func (c *Client) SignInByDevice(ctx context.Context, show func(Approval)) error {
	var begun struct {
		Approval
		DeviceCode string `json:"device_code"`
		Interval   int    `json:"interval"` // seconds
	}
	if err := c.Call(ctx, http.MethodPost, "/auth/device", map[string]string{"client_name": programName()}, &begun); err != nil {
		return err
	}
	show(begun.Approval)
	interval := max(wait(begun.Interval), time.Second)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
		var granted struct {
			AccessToken string `json:"access_token"`
		}
		err := c.Call(ctx, http.MethodPost, "/auth/device/token", map[string]string{"device_code": begun.DeviceCode}, &granted)
		var p *Problem
		switch {
		case err == nil:
			c.Token = granted.AccessToken
			return nil
		case errors.As(err, &p) && p.Slug() == "slow_down":
			interval += 5 * time.Second // as RFC 8628, section 3.5, says
		case errors.As(err, &p) && p.Slug() == "authorization_pending":
		default:
			return err
		}
	}
}

// programName is the name of this program's tokens.
func programName() string {
	if host, err := os.Hostname(); err == nil {
		return "command line on " + host
	}
	return "command line"
}
