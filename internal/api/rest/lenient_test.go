package rest_test

import (
	"context"
	"net/http"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// TestLenientRow holds that a lenient row reads the inputs that it knows and ignores
// others, and that its refusals have the members of its protocol.
func TestLenientRow(t *testing.T) {
	type in struct {
		Code string `json:"code,omitempty" maxLength:"3"`
	}
	type out struct {
		Code string `json:"code"`
	}
	echo := func(_ context.Context, in in) (out, error) { return out(in), nil }
	adapt := func(f *fault.Error) *fault.Error { return f.With("error", "invalid_request") }
	h := rest.Handler(rest.Config{}, []op.Op{
		op.New(op.Row{ID: "code.get", Method: "GET", Path: "/code", Rule: policy.Public(), Lenient: true, AdaptFault: adapt}, echo),
		op.New(op.Row{ID: "code.take", Method: "POST", Path: "/code", Rule: policy.Public(), Lenient: true, Form: true,
			AdaptFault: adapt}, echo),
	})
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, c := range []struct {
		method, target, body string
		header               []string
		status               int
	}{
		{"GET", "/code?code=abc&more=1", "", nil, 200},
		{"POST", "/code", `{"code": "abc", "more": {"deep": 1}}`, nil, 200},
		{"POST", "/code", "code=abc&more=1", form, 200},
		{"GET", "/code?code=abcd", "", nil, 400},
		{"GET", "/code?code=abc&code=abc", "", nil, 400},
		{"POST", "/code", `{"code": 1}`, nil, 400},
		{"POST", "/code", "code=abc&code=abc", form, 400},
	} {
		resp, body := call(t, h, c.method, c.target, "", c.body, c.header...)
		if resp.StatusCode != c.status {
			t.Errorf("%s %s %s: %d %v", c.method, c.target, c.body, resp.StatusCode, body)
			continue
		}
		if c.status == http.StatusOK && body["code"] != "abc" || c.status != http.StatusOK && body["error"] != "invalid_request" {
			t.Errorf("%s %s %s: %v", c.method, c.target, c.body, body)
		}
	}
}
