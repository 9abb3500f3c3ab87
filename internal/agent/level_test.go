package agent_test

import (
	"strings"
	"testing"

	"yardmaster/internal/agent/sandbox"
	"yardmaster/internal/protocol"
)

// The other tests run agents at the best level that the machine offers,
// whichever that is; this one at Bubblewrap or not at all.
func TestRunInBubblewrap(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Egress = []string{strings.TrimPrefix(p.http.URL, "http://")}
	p.start(cfg)
	run := p.task(func(s *protocol.Start) {
		s.Isolation = string(sandbox.Bubblewrap)
		s.Prompt = "run test $PWD:$HOME = " + sandbox.TaskDir + ":" + sandbox.HomeDir +
			"\nmodel\nfetch " + p.http.URL + "/nothing\nwrite a.txt one\ncommit a\nsay done"
	})
	s, f := p.finish(run)
	if f.Kind == "policy_refused" {
		t.Fatalf("bubblewrap is not to be had on this machine (%s): install it to run this test", f.Error)
	}
	if f.State != protocol.Succeeded || f.Usage.InputTokens != 7 || s.text() != p.http.URL+"/nothing: 404 Not Found\ndone\n" || p.show(f.Tip, "a.txt") != "one" {
		t.Errorf("said %q, finished %+v", s.text(), f)
	}
	var started protocol.Started
	s.data(t, protocol.EventStarted, &started)
	if started.Isolation != string(sandbox.Bubblewrap) {
		t.Errorf("started %+v", started)
	}
}
