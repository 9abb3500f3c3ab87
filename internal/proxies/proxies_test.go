package proxies

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestThisMachineIsReachedWithoutAProxy(t *testing.T) {
	t.Setenv("http_proxy", "http://192.0.2.7:3128")
	t.Setenv("no_proxy", "intranet.example")
	t.Setenv("NO_PROXY", "")
	SpareThisMachine()
	SpareServer(t.Context(), "http://192.0.2.1:8080")
	SpareServer(t.Context(), "http://no-such-name.invalid:8080")
	SpareServer(t.Context(), "http://127.0.0.2:8080")
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		have := strings.Split(os.Getenv(name), ",")
		want := []string{"intranet.example", "localhost", "127.0.0.1", "::1", "127.0.0.2"}
		for _, own := range addresses() {
			want = append(want, own.String())
		}
		for _, host := range want {
			if !slices.Contains(have, host) {
				t.Errorf("%s lacks %s: %s", name, host, have)
			}
		}
		for _, host := range []string{"192.0.2.1", "no-such-name.invalid"} {
			if slices.Contains(have, host) {
				t.Errorf("%s has %s, which is not this machine", name, host)
			}
		}
	}
	for address, spared := range map[string]bool{"http://localhost:1/": true, "http://127.0.0.1:1/": true,
		"http://elsewhere.example/": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		proxy, err := http.ProxyFromEnvironment(r)
		if err != nil || (proxy == nil) != spared {
			t.Errorf("%s by %v, %v", address, proxy, err)
		}
	}
}

func TestNoProxyNoChange(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy",
		"NO_PROXY", "no_proxy"} {
		t.Setenv(name, "")
	}
	SpareThisMachine()
	SpareServer(t.Context(), "http://127.0.0.3:8080")
	if set := os.Getenv("NO_PROXY") + os.Getenv("no_proxy"); set != "" {
		t.Errorf("set to %q", set)
	}
}
