package builtin

import (
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/hosttest"
)

// TestHost holds that the built-in host does what every code host does.
func TestHost(t *testing.T) {
	hosttest.Run(t, func(t *testing.T) hosttest.Site {
		s := newSite(t, "")
		if err := s.Create(t.Context(), shop, codehost.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return hosttest.Site{
			Host: s.Host, Repo: shop, Remote: s.path(shop), Pull: func(*testing.T, string, string) int64 { return 0 },
		}
	})
}
