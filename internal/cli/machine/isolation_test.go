package machine

import "testing"

func TestIsolationOfABoxIsTold(t *testing.T) {
	for want, levels := range map[string][]string{
		"": nil,
		"  bubblewrap holds files, network\n  none       holds nothing": {"bubblewrap", "none"},
	} {
		if got := isolation(levels, map[string][]string{"bubblewrap": {"files", "network"}, "vault": {"gold"}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	all := []string{"files", "processes", "unix_sockets", "network", "kernel", "memory", "disk"}
	if got := isolation([]string{"bubblewrap"}, map[string][]string{"bubblewrap": all}); len(got) > 80 {
		t.Errorf("%q has %d columns", got, len(got))
	}
}
