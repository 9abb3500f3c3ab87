package codehost

import "testing"

func TestMayPush(t *testing.T) {
	a := Access{Push: []string{"refs/heads/a", "refs/wip/*", "refs/tags/v*", "*"}}
	for ref, want := range map[string]bool{
		"refs/heads/a": true, "refs/wip/1/2": true, "refs/heads/ab": false, "refs/heads/a/b": false, "refs/wip": false,
		"refs/wipe/x": false, "refs/tags/v1": false, "refs/x": false,
	} {
		if got := a.MayPush(ref); got != want {
			t.Errorf("MayPush(%s) = %v", ref, got)
		}
	}
	if (Access{}).MayPush("refs/heads/a") {
		t.Error("the zero Access may push")
	}
}
