package rig

import (
	"context"
	"io"
	"net/http"
	"strings"

	"yardmaster/internal/proof/patience"
)

// Plain is a client that follows no redirect and keeps no cookie.
var Plain = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// request makes a request with a token, unless it is empty. Header lists names and
// values by turns, Host among them. The response is read until ctx ends.
func (y *Yard) request(ctx context.Context, method, target, bearer, body string, header []string) *http.Response {
	y.T.Helper()
	req, err := http.NewRequestWithContext(ctx, method, y.URL+target, strings.NewReader(body))
	if err != nil {
		y.T.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := Plain.Do(req)
	if err != nil {
		y.T.Fatal(err)
	}
	return resp
}

// Send makes a request with a token, unless it is empty, and returns the response
// and its body. Header lists names and values by turns, Host among them.
func (y *Yard) Send(method, target, bearer, body string, header ...string) (*http.Response, []byte) {
	y.T.Helper()
	ctx, stop := context.WithTimeout(y.T.Context(), patience.Of(y.T))
	defer stop()
	resp := y.request(ctx, method, target, bearer, body, header)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		y.T.Fatalf("%s %s: %v", method, target, err)
	}
	return resp, text
}

// Hear reads a stream until enough answers true, the stream ends, or our patience does,
// and returns the response and what was read.
func (y *Yard) Hear(target, bearer string, header []string, enough func(*http.Response, []byte) bool) (*http.Response, []byte) {
	y.T.Helper()
	ctx, stop := context.WithTimeout(y.T.Context(), patience.Of(y.T))
	defer stop()
	resp := y.request(ctx, http.MethodGet, target, bearer, "", header)
	defer resp.Body.Close()
	var text []byte
	for buf := make([]byte, 64<<10); ; {
		n, err := resp.Body.Read(buf)
		if text = append(text, buf[:n]...); err != nil || enough(resp, text) {
			return resp, text
		}
	}
}
