package smarthttp

import (
	"net/http"
	"strings"
	"testing"
)

func TestGitProtocolHeaderIsChecked(t *testing.T) {
	for header, want := range map[string]string{
		"version=2": "version=2", "version=1:agent=x": "version=1:agent=x", "": "", "version=9": "", "version=2\n": "", "x": "",
		"version=2:$(id)": "", "version=2:" + strings.Repeat("a", 100): "",
	} {
		r := &http.Request{Header: http.Header{"Git-Protocol": {header}}}
		if got := Protocol(r); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
