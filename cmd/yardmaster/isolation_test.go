package main

import "testing"

func TestIsolationOfABoxIsTold(t *testing.T) {
	for want, levels := range map[string][]string{
		"": nil,
		"  bubblewrap  holds files, network\n  none        holds nothing": {"bubblewrap", "none"},
	} {
		if got := isolation(levels, map[string][]string{"bubblewrap": {"files", "network"}, "vault": {"gold"}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
