package box_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/protocol"
)

func TestAgentRun(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	p.start(cfg)
	run := p.task(func(s *protocol.Start) {
		s.Prompt = "model\nleak\nwrite a.txt one\ncommit add a\nwrite b.txt two\nreport # Done\nsay all good"
		p.secrets = []protocol.Secret{{Name: "PHRASE", Delivery: protocol.DeliverEnv, Value: []byte("all good")}}
	})
	s, f := p.finish(run)
	if f.State != protocol.Succeeded || f.Report != "# Done" || f.ReportBy != "report_md" || f.Stop != "end_turn" || f.WIP {
		t.Errorf("finished %+v", f)
	}
	want := "run.accepted preparing prepared started usage agent.update git.pushed run.finished"
	if s.kinds() != want {
		t.Errorf("events %s, want %s", s.kinds(), want)
	}
	if tip := git(t, p.repo, "rev-parse", "svc/t--12345678"); tip != f.Tip || f.Base != git(t, p.repo, "rev-parse", "main") {
		t.Errorf("the branch is at %s, finished says %+v", tip, f)
	}
	if p.show(f.Tip, "a.txt") != "one" || p.show(f.Tip, "b.txt") != "two" || strings.Join(f.Paths, " ") != "a.txt b.txt" {
		t.Errorf("pushed files or paths are wrong: %q", f.Paths)
	}
	if f.Usage.InputTokens != 7 || f.Usage.OutputTokens != 3 {
		t.Errorf("usage %+v", f.Usage)
	}
	var started protocol.Started
	s.data(t, protocol.EventStarted, &started)
	if started.Agent != "builtin" || started.Version != "0.1" || started.Session != "s1" || started.Isolation == "" ||
		!protocol.Keeps(started.Isolation, started.Holds) {
		t.Errorf("started %+v", started)
	}
	if text := s.text(); !strings.HasPrefix(text, "token [") || strings.Contains(text, "good") {
		t.Errorf("secrets are not scrubbed from %q", text)
	}
	p.until("the run is gone from the box", func() bool { return p.presence != nil && len(p.presence.Runs) == 0 && p.presence.Free == 2 })
	if left, err := os.ReadDir(filepath.Join(cfg.DataDir, "runs")); err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}

func TestSecretsReachAnAgent(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.secrets = []protocol.Secret{
		{Name: "OPEN", Delivery: protocol.DeliverEnv, Value: []byte("for everybody in it")},
		{Name: "CLOSED", Delivery: protocol.DeliverBroker, Value: []byte("for the box alone"), Hosts: []string{"api.example.com"},
			Header: "Authorization"},
	}
	p.start(p.config())
	run := p.task(func(s *protocol.Start) {
		s.Kind, s.Agent, s.Branch, s.Checkout = "ci", "command", "", git(t, p.repo, "rev-parse", "main")
		s.Command = []string{"/bin/sh", "-c",
			`env; case "$YARDMASTER_SECRETS_URL" in http://127.0.0.1:*) ;; *) exit 8;; esac; [ "$OPEN" = "for everybody in it" ] && [ -z ` +
				`"$CLOSED" ]`}
	})
	s, f := p.finish(run)
	if f.ExitCode == nil || *f.ExitCode != 0 {
		t.Errorf("finished %+v", f)
	}
	for _, secret := range []string{"everybody", "the box alone"} {
		if strings.Contains(s.text()+f.Output, secret) {
			t.Errorf("%q is in what the run said", secret)
		}
	}
}

func TestCommandIsJudgedByItsExitCode(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	ci := func(script string) string {
		return p.task(func(s *protocol.Start) {
			s.Kind, s.Agent, s.Branch = "ci", "command", ""
			s.Checkout = git(t, p.repo, "rev-parse", "main")
			s.Command = []string{"/bin/sh", "-c", script}
			s.Env = map[string]string{"WORD": "seen"}
		})
	}
	good, bad := ci("cat README; echo $WORD >&2; echo changed >README"), ci("echo oops; exit 3")
	if _, f := p.finish(good); f.State != protocol.Succeeded || *f.ExitCode != 0 || f.Tip != "" ||
		!strings.Contains(f.Output, "demo") || !strings.Contains(f.Output, "seen") {
		t.Errorf("good: %+v", f)
	}
	s, f := p.finish(bad)
	if f.State != protocol.Failed || *f.ExitCode != 3 || f.Output != "oops" {
		t.Errorf("bad: %+v", f)
	}
	if !strings.Contains(s.text(), "oops") {
		t.Errorf("output events: %q", s.text())
	}
	if branches := git(t, p.repo, "branch", "--format=%(refname:short)"); branches != "main" {
		t.Errorf("branches: %s", branches)
	}
}

func TestCommandWorkIsPushed(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", "sed -i s/demo/changed/ README"}
	})
	if _, f := p.finish(run); f.State != protocol.Succeeded || p.show(f.Tip, "README") != "changed" {
		t.Errorf("finished %+v", f)
	}
}

func TestFailuresHaveTheirKind(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	for _, c := range []struct {
		name   string
		kind   string
		change func(*protocol.Start)
	}{
		{"isolation that the box does not have", "policy_refused", func(s *protocol.Start) { s.Isolation = "vault" }},
		{"agent that is not installed", "setup_failed", func(s *protocol.Start) { s.Agent = "nobody" }},
		{"repository that is not there", "checkout_failed", func(s *protocol.Start) { s.CloneURL += ".not" }},
		{"turn that ends with nothing", "gave_up", func(s *protocol.Start) { s.Prompt = "stop end_turn" }},
		{"scout without a report", "report_missing", func(s *protocol.Start) { s.Branch, s.Kind = "", "scout" }},
		{"agent that ends with 0 amid a turn", "agent_crashed", func(s *protocol.Start) { s.Prompt = "exit" }},
		{"refusal", "gave_up", func(s *protocol.Start) { s.Prompt = "say no\nstop refusal" }},
		{"time that runs out", "run_timeout", func(s *protocol.Start) { s.Prompt, s.TimeoutMS = "hang", 2000 }},
		{"model that refuses for good", "no_credential", func(s *protocol.Start) {
			s.Prompt, s.ModelToken = strings.Repeat("try\n", 3)+"hang", "dev_att_dead"
		}},
		{"model that refuses, in the agent's own words", "no_credential", func(s *protocol.Start) {
			s.Prompt, s.ModelToken = "model", "dev_att_dead"
		}},
		{"model that refuses, and an agent that ends its turn", "no_credential", func(s *protocol.Start) {
			s.Prompt, s.ModelToken = "try\nsay done", "dev_att_dead"
		}},
	} {
		run := p.task(c.change)
		if _, f := p.finish(run); f.State != protocol.Failed || f.Kind != c.kind {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestRefusedPushFailsTheRun(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	program(t, filepath.Join(p.repo, "hooks", "pre-receive"), "echo not today >&2\nexit 1")
	p.start(p.config())
	run := p.task(func(s *protocol.Start) { s.Prompt = "write a.txt one\nsay done" })
	if _, f := p.finish(run); f.State != protocol.Failed || f.Kind != "push_rejected" || !strings.Contains(f.Error, "not today") {
		t.Errorf("finished %+v", f)
	}
}

func TestSecondAttemptResumesTheBranch(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	first := p.task(func(s *protocol.Start) { s.Prompt = "write a.txt one\nexit" })
	_, f := p.finish(first)
	if f.State != protocol.Failed || !f.WIP || p.show(f.Tip, "a.txt") != "one" {
		t.Fatalf("first: %+v", f)
	}
	second := p.task(func(s *protocol.Start) { s.Attempt, s.Prompt = 2, "write b.txt two\ncommit b\nsay done" })
	s, g := p.finish(second)
	var prepared protocol.Prepared
	s.data(t, protocol.EventPrepared, &prepared)
	if prepared.Resume != f.Tip || g.State != protocol.Succeeded || p.show(g.Tip, "a.txt")+p.show(g.Tip, "b.txt") != "onetwo" {
		t.Errorf("second: prepared %+v, finished %+v", prepared, g)
	}
}

// TestNextAttemptResumesWhatWasSaved holds that the work of a box that lost its run
// is where its attempt saved it, and that the next attempt waits for it, unless it
// does not continue the branch.
func TestNextAttemptResumesWhatWasSaved(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Renew, cfg.Timing.Grace = 4*time.Second, time.Hour // its agent is killed once the box knows that the run is lost
	p.start(cfg)
	first := p.task(func(s *protocol.Start) { s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks} })
	p.until("some ticks", func() bool { return strings.Count(p.run(first).text(), "\n") > 5 })
	next := func(change func(*protocol.Start)) string {
		return p.task(func(s *protocol.Start) {
			s.Attempt, s.Saved, s.Prompt = 2, protocol.SavedRef(first, 1), "write b.txt two\ncommit b\nsay done"
			change(s)
		})
	}
	second := next(func(s *protocol.Start) { s.SavedMS = time.Hour.Milliseconds() })
	p.until("the second is prepared", func() bool { return strings.Contains(p.run(second).kinds(), protocol.EventPreparing) })
	p.send(protocol.Command{Kind: protocol.CommandHalt, Run: first, Attempt: 1, Mode: protocol.HaltGraceful})
	p.change(func() { p.run(first).fenced = true })
	s, f := p.finish(second)
	var prepared protocol.Prepared
	s.data(t, protocol.EventPrepared, &prepared)
	if prepared.Resume != git(t, p.repo, "rev-parse", protocol.SavedRef(first, 1)) || f.State != protocol.Succeeded ||
		p.show(f.Tip, "wip.txt")+p.show(f.Tip, "b.txt") != "wiptwo" {
		t.Errorf("second: prepared %+v, finished %+v", prepared, f)
	}
	third := next(func(s *protocol.Start) { s.Attempt, s.Prompt = 3, "say nothing new" })
	s, _ = p.finish(third)
	s.data(t, protocol.EventPrepared, &prepared)
	if prepared.Resume != f.Tip {
		t.Errorf("third: it left the branch at %s for %+v", f.Tip, prepared)
	}
	fourth := next(func(s *protocol.Start) { s.Branch, s.Saved = "svc/u--12345678", protocol.SavedRef("none", 1) })
	s, f = p.finish(fourth)
	prepared = protocol.Prepared{}
	s.data(t, protocol.EventPrepared, &prepared)
	if prepared.Resume != "" || f.State != protocol.Succeeded {
		t.Errorf("fourth: prepared %+v, finished %+v", prepared, f)
	}
}

func TestSandboxReachesWhatTheBoxAllows(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Egress = []string{strings.TrimPrefix(p.http.URL, "http://")}
	p.start(cfg)
	run := p.task(func(s *protocol.Start) {
		s.Prompt = "fetch " + p.http.URL + "/nothing\nfetch http://127.0.0.1:9/x\nreport seen"
		s.Kind, s.Branch = "scout", ""
	})
	s, f := p.finish(run)
	want := p.http.URL + "/nothing: 404 Not Found\nhttp://127.0.0.1:9/x: 403 Forbidden\n"
	if f.State != protocol.Succeeded || s.text() != want {
		t.Errorf("finished %+v, said %q, want %q", f, s.text(), want)
	}
}

func TestCommandMayAskTheModel(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Prompt, s.Branch = "command", "rename it", ""
		s.Command = []string{"/bin/sh", "-c", `cat "$YARDMASTER_PROMPT"; test -n "$YARDMASTER_MODEL_TOKEN" && echo " $YARDMASTER_MODEL"`}
	})
	if _, f := p.finish(run); f.State != protocol.Succeeded || f.Output != "rename it m" {
		t.Errorf("finished %+v", f)
	}
}

func TestRewrittenBranchIsReplacedOnlyIfNobodyElseMovedIt(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	_, first := p.finish(p.task(func(s *protocol.Start) { s.Prompt = "write a.txt one\ncommit a\nsay done" }))
	rewrite := func(attempt int) protocol.Finished {
		_, f := p.finish(p.task(func(s *protocol.Start) {
			s.Attempt, s.Agent = attempt, "command"
			s.Command = []string{"/bin/sh", "-c", "git commit -q --amend -m rewritten-" + s.Run + " && touch ready"}
		}))
		return f
	}
	second := rewrite(2)
	if second.State != protocol.Succeeded || git(t, p.repo, "rev-list", "--count", "svc/t--12345678", "--not", "main", first.Tip) != "2" {
		t.Errorf("rewritten: %+v", second)
	}
	// Somebody else's commit arrives at the very moment of the push.
	other := git(t, p.repo, "commit-tree", "-p", second.Tip, "-m", "by hand", second.Tip+"^{tree}")
	program(t, filepath.Join(p.repo, "hooks", "pre-receive"),
		"unset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/svc/t--12345678 "+other)
	third := rewrite(3)
	if third.State != protocol.Failed || third.Kind != "push_rejected" || git(t, p.repo, "rev-parse", "svc/t--12345678") != other {
		t.Errorf("moved by somebody else: %+v", third)
	}
}

func TestUnfinishedRepairIsNotPutIntoThePullRequest(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	_, work := p.finish(p.task(func(s *protocol.Start) { s.Prompt = "write a.txt one\ncommit a\nsay done" }))
	run := p.task(func(s *protocol.Start) { s.Kind, s.Prompt = "babysit", "write a.txt half\ncommit half\nexit" })
	if _, f := p.finish(run); f.State != protocol.Failed || f.Tip != "" || f.WIP {
		t.Errorf("finished %+v", f)
	}
	if head := git(t, p.repo, "rev-parse", "svc/t--12345678"); head != work.Tip {
		t.Error("the branch has unfinished work")
	}
	if p.show("refs/wip/"+run+"/1", "a.txt") != "half" {
		t.Error("the unfinished work is not saved")
	}
	run = p.task(func(s *protocol.Start) {
		s.Kind, s.Attempt, s.Prompt = "babysit", 2, "write a.txt two\ncommit whole\nsay done"
	})
	if _, f := p.finish(run); f.State != protocol.Succeeded || f.Base != work.Tip ||
		git(t, p.repo, "rev-parse", "svc/t--12345678") != f.Tip {
		t.Errorf("finished %+v", f)
	}
}

// TestImproperAgent holds that output of an agent that a strict reader refuses
// stops neither later events nor the run.
func TestImproperAgent(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	say := func(update string) string {
		return "raw " + strconv.Quote(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":`+update+`}}`) + "\n"
	}
	run := p.task(func(s *protocol.Start) {
		s.Prompt = say(`{"sessionUpdate":"tool_call_update","toolCallId":"1","a":1,"a":2}`) +
			say(`{"sessionUpdate":"tool_call_update","toolCallId":"2","rawOutput":"cut \ud83d"}`) +
			say("{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"3\",\"rawOutput\":\"\xff\"}") +
			say(strings.Repeat(`{"a":[`, 4000)+strings.Repeat("]}", 4000)) +
			say("nonsense") +
			`raw "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\",` +
			`\"options\":[],\"options\":[]}}"` + "\nsay done"
	})
	s, f := p.finish(run)
	if f.State != protocol.Succeeded || !strings.Contains(s.text(), "done") {
		t.Errorf("%+v, said %q in %s", f, s.text(), s.kinds())
	}
}
