package box_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/box"
	"yardmaster/internal/protocol"
)

const keyBlocker = `{"kind":"missing_credential","question":"Which ` +
	`key?","fields":[{"name":"PAY_KEY","kind":"env_secret","description":"of hunter22"}]}`

// all decodes the data of every event of a kind.
func all[T any](t *testing.T, s *seen, kind string) (out []T) {
	t.Helper()
	for _, e := range s.events {
		if e.Kind == kind {
			var v T
			if err := json.Unmarshal(e.Data, &v); err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	return out
}

func TestParkedAgentIsWokenAndFinishes(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.secrets = []protocol.Secret{{Name: "PIN", Delivery: protocol.DeliverEnv, Value: []byte("hunter22")}}
	cfg := p.config()
	clock := held(&cfg)
	p.start(cfg)
	run := p.task(func(s *protocol.Start) {
		s.Prompt = "write a.txt one\ncommit a\ndeclare blocker-key.json " + keyBlocker +
			"\ndeclare ask-1.json {\"title\":\"Document it\",\"body\":\"It is not.\",\"repo\":\"acme/docs\",\"dedupe_key\":\"d\"}\nsay waiting"
	})
	p.until("the run is parked", func() bool { return strings.HasSuffix(p.run(run).kinds(), protocol.EventParked) })
	if n := clock.over(cfg.Timing.Stall); n != 0 {
		t.Error("waiting is stalling")
	}
	p.send(protocol.Command{Kind: protocol.CommandMessage, Run: run, Attempt: 1, Text: "write b.txt two\ncommit b\nsay thanks", ID: "m1"})
	s, f := p.finish(run)
	if f.State != protocol.Succeeded || p.show(f.Tip, "a.txt")+p.show(f.Tip, "b.txt") != "onetwo" {
		t.Errorf("finished %+v", f)
	}
	asks, blockers := all[protocol.AskFiled](t, s, protocol.EventAsk), all[protocol.BlockerDeclared](t, s, protocol.EventBlocker)
	if len(asks) != 1 || asks[0].Title != "Document it" || asks[0].Repo != "acme/docs" || asks[0].DedupeKey != "d" || asks[0].ID == "" {
		t.Errorf("asks %+v", asks)
	}
	if len(blockers) != 1 || blockers[0].Question != "Which key?" || len(blockers[0].Fields) != 1 ||
		strings.Contains(blockers[0].Fields[0].Description, "hunter22") {
		t.Fatalf("blockers %+v", blockers)
	}
	parked := all[protocol.Parked](t, s, protocol.EventParked)
	if len(parked) != 1 || parked[0].WindowMS != (10*time.Minute).Milliseconds() || parked[0].Blockers[0] != blockers[0].ID {
		t.Errorf("parked %+v", parked)
	}
	var fate []string
	for _, m := range all[protocol.UserMessage](t, s, protocol.EventMessage) {
		fate = append(fate, m.ID+" "+m.State+" "+m.Reply)
	}
	if got := strings.Join(fate, ", "); got != "m1 queued , m1 delivered , m1 read thanks" {
		t.Errorf("the message: %s", got)
	}
	if !strings.Contains(s.kinds(), "run.parked user.message run.resumed user.message") {
		t.Errorf("events %s", s.kinds())
	}
}

func TestParkedAgentIsBlockedInTheEnd(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	cfg.Timing.Park = time.Second
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "write a.txt one\ndeclare blocker-key.json " + keyBlocker })
	if _, f := p.finish(run); f.State != protocol.Blocked || f.Error != "Which key?" || !f.WIP || p.show(f.Tip, "a.txt") != "one" ||
		f.Session != "s1" {
		t.Errorf("finished %+v", f)
	}
	command := p.task(func(s *protocol.Start) {
		s.Agent, s.Branch, s.Command = "command", "", []string{"/bin/sh", "-c", `printf '%s' '` + keyBlocker +
			`' >"$YARDMASTER_OUTBOX/blocker-1.json"; exit 1`}
	})
	if s, f := p.finish(command); f.State != protocol.Blocked || len(all[protocol.BlockerDeclared](t, s, protocol.EventBlocker)) != 1 {
		t.Errorf("command: %+v", f)
	}
}

func TestActionIsDeclared(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) {
		s.Prompt = `declare action-1.json {"pull": 7, "kind": "label", "label": "docs", "why": "It lacks a page."}` + "\nreport # Done"
	})
	s, f := p.finish(run)
	got := all[protocol.ActionProposed](t, s, protocol.EventAction)
	if f.State != protocol.Succeeded || len(got) != 1 || got[0].Pull != 7 || got[0].Label != "docs" || got[0].ID == "" {
		t.Errorf("%+v, %+v", f, got)
	}
}

// TestMutedOutbox holds that nothing is read from the outbox of a run that declares
// nothing, and that such a run does not wait for an answer.
func TestMutedOutbox(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) {
		s.Mute = true
		s.Prompt = "declare blocker-key.json " + keyBlocker + "\ndeclare ask-1.json {\"title\":\"t\",\"body\":\"b\"}\n" +
			"declare action-1.json {\"pull\":1,\"kind\":\"close\",\"why\":\"w\"}\ndeclare ask-2.json no\nsay done"
	})
	s, f := p.finish(run)
	if f.State != protocol.Succeeded {
		t.Errorf("finished %+v", f)
	}
	for _, kind := range []string{
		protocol.EventAsk, protocol.EventAction, protocol.EventBlocker, protocol.EventRefused, protocol.EventParked,
	} {
		if strings.Contains(s.kinds(), kind) {
			t.Errorf("%s is among %s", kind, s.kinds())
		}
	}
}

func TestHostileOutbox(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	good := `{"title":"t","body":"b"}`
	for name, c := range map[string]struct {
		do            string
		asks, refused int
	}{
		"a link out":        {`ln -s /etc/passwd ask-1.json`, 0, 1},
		"a pipe":            {`mkfifo blocker-1.json`, 0, 1},
		"a directory":       {`mkdir ask-1.json`, 0, 1},
		"a huge file":       {`head -c 100000000 /dev/zero >ask-1.json`, 0, 1},
		"no JSON":           {`echo no >ask-1.json; echo '[]' >ask-2.json; printf '"\377"' >ask-3.json`, 0, 3},
		"wrong kind":        {`echo '{"kind":"boredom","question":"q"}' >blocker-1.json`, 0, 1},
		"wrong action":      {`echo '{"pull":1,"kind":"merge","why":"w"}' >action-1.json; echo '{"pull":0,"kind":"close","why":"w"}' >action-2.json`, 0, 2},
		"other files":       {`echo '` + good + `' >note.json; echo '` + good + `' >ask-1.txt`, 0, 0},
		"thousands":         {`i=0; while [ $i -lt 3000 ]; do echo '` + good + `' >ask-$i.json; i=$((i+1)); done`, protocol.MaxDeclared, 0},
		"what cannot go":    {`echo '` + good + `' >ask-1.json; chmod 500 .`, 1, 0},
		"the outbox a link": {`cd ..; rm -rf outbox; ln -s / outbox`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := p.task(func(s *protocol.Start) {
				s.Branch, s.Kind = "", "scout"
				s.Prompt = fmt.Sprintf("run cd \"$%s\"; %s\nreport # Done", box.OutboxVariable, c.do)
			})
			p.until("it began", func() bool { return strings.Contains(p.run(run).kinds(), protocol.EventStarted) })
			p.send(protocol.Command{Kind: protocol.CommandMessage, Run: run, Attempt: 1, Text: "say once more"})
			s, f := p.finish(run)
			asks, refused := all[protocol.AskFiled](t, s, protocol.EventAsk), all[protocol.OutboxRefused](t, s, protocol.EventRefused)
			if f.State != protocol.Succeeded || len(asks) != c.asks || len(refused) != c.refused {
				t.Errorf("finished %+v, %d asks, refused %+v", f, len(asks), refused)
			}
		})
	}
}
