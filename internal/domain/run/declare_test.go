package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
	"yardmaster/internal/reach"
)

func TestDeclarationsReachTheirDomains(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		var asks []protocol.AskFiled
		var blockers []protocol.BlockerDeclared
		AskFiled.On(f.DB, func(tx *db.Tx, d Declaration[protocol.AskFiled]) error {
			if d.Declared.Title == "refuse me" {
				return fault.Field("title", "is not wanted")
			}
			if tx.Account != f.account || d.Task.ID != d.Run.TaskID {
				t.Errorf("asked about task %s of %s", d.Task.ID, tx.Account)
			}
			asks = append(asks, d.Declared)
			return nil
		})
		BlockerDeclared.On(f.DB, func(_ *db.Tx, d Declaration[protocol.BlockerDeclared]) error {
			blockers = append(blockers, d.Declared)
			return nil
		})
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, append(started(),
			ev(protocol.EventAsk, protocol.AskFiled{ID: "1", Title: " Two\nlines ", Body: "b"}),
			ev(protocol.EventAsk, protocol.AskFiled{ID: "2", Title: "refuse me", Body: "b"}),
			ev(protocol.EventAsk, map[string]any{"id": 3}),
			ev(protocol.EventBlocker, protocol.BlockerDeclared{ID: "4", Kind: "missing_credential", Question: "Key?",
				Fields: []protocol.BlockerField{{Name: "KEY", Kind: "env_secret"}, {Name: "X", Kind: "root_shell"}}}),
			ev(protocol.EventBlocker, protocol.BlockerDeclared{ID: "5", Kind: "boredom", Question: "Why?"}),
			ev(protocol.EventParked, protocol.Parked{WindowMS: 1000}))...)
		if len(asks) != 1 || asks[0].Title != "Two lines" || len(blockers) != 1 || len(blockers[0].Fields) != 1 {
			t.Errorf("asks %+v, blockers %+v", asks, blockers)
		}
		if r := f.run(f.boxes[0], st.Run); r.State != Parked || r.CommittedSeq != 10 {
			t.Errorf("run %+v", r)
		}
		for n := range 3 {
			events := make([]protocol.Event, 10)
			for i := range events {
				events[i] = ev(protocol.EventAsk, protocol.AskFiled{ID: "x", Title: "more", Body: "b"})
			}
			f.mustSay(f.boxes[0], st, int64(11+10*n), events...)
		}
		if len(asks) != 1+protocol.MaxDeclared-5 {
			t.Errorf("%d asks of one run", len(asks))
		}
		out, err := f.result(f.ctx(), idIn{taskID})
		if err != nil || len(out.RawTasks) < 2 || out.Blocker == nil || out.Blocker.Question != "Key?" || len(out.AskIDs) != 1 ||
			out.AskIDs[0] != st.Run {
			t.Errorf("result %+v, %v", out, err)
		}

		f.pass(time.Hour)
		f.mustSay(f.boxes[0], st, 41, ev(protocol.EventResumed, nil))
		if r := f.run(f.boxes[0], st.Run); r.State != Live {
			t.Errorf("woken run is %s", r.State)
		}
		f.mustSay(f.boxes[0], st, 42, finished(protocol.Finished{State: protocol.Blocked, Error: "Key?", Tip: "wip", WIP: true}))
		if row := f.wantStatus(taskID, task.Held); *row.FailureKind != task.Blocked || *row.WIPSHA != "wip" {
			t.Errorf("task %+v", row)
		}
	})
}

// TestSurveyNamesItsBlocker holds that the result of a survey shows its blocker
// beside its findings, and that the result of other work shows its blocker too.
func TestSurveyNamesItsBlocker(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for _, c := range []struct {
			kind    string
			blocked bool
		}{{task.KindScout, true}, {task.KindScout, false}, {task.KindWork, true}} {
			taskID := f.create(c.kind)
			st := f.claim(f.boxes[0])
			events := started()
			if c.blocked {
				events = append(events, ev(protocol.EventBlocker, protocol.BlockerDeclared{ID: "4", Kind: "missing_access",
					Question: "May I read it?"}))
			}
			f.mustSay(f.boxes[0], st, 1, append(events,
				finished(protocol.Finished{State: protocol.Succeeded, Tip: "t", Base: "b", Report: "It is there."}))...)
			got := f.get("/v1/tasks/"+taskID+"/report", 200)
			survey, found := got["scout_context"].(map[string]any)
			if found != (c.kind == task.KindScout) {
				t.Fatalf("%s: scout_context is %v", c.kind, got["scout_context"])
			}
			for where, b := range map[string]any{"blocker": got["blocker"], "scout_context.blocker": survey["blocker"]} {
				b, _ := b.(map[string]any)
				switch wanted := c.blocked && (found || where == "blocker"); {
				case wanted != (b != nil):
					t.Errorf("%s, blocked %t: %s is %v", c.kind, c.blocked, where, b)
				case wanted && (b["question"] != "May I read it?" || b["kind"] != "missing_access" || b["run_id"] != st.Run):
					t.Errorf("%s: %s is %v", c.kind, where, b)
				}
			}
		}
	})
}

func TestParkedRunIsNotStuck(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, append(started(), ev(protocol.EventParked, protocol.Parked{WindowMS: 1000}))...)
		f.pass(time.Hour)
		if _, err := f.Renew(context.Background(), f.boxes[0], protocol.Renew{Run: st.Run, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		f.scan()
		if f.task(taskID).Stuck {
			t.Error("a run that waits for a person counts as stuck")
		}
	})
}

func TestAnswerThatComesTooLateReleasesTheTask(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, append(started(), ev(protocol.EventParked, protocol.Parked{WindowMS: 1000}))...)
		wake := func() (woken bool) {
			f.write(func(tx *db.Tx) (err error) {
				woken, err = Wake(tx, st.Run, "Here it is.")
				return err
			})
			return woken
		}
		if !wake() {
			t.Error("a parked run was not woken")
		}
		f.mustSay(f.boxes[0], st, 6, finished(protocol.Finished{State: protocol.Blocked, Error: "Key?"}))
		f.wantStatus(taskID, task.Pending)
		if wake() {
			t.Error("an ended run was woken")
		}
	})
}

func TestMessageHasAFate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		say := func() (messageID string, err error) {
			err = f.DB.Write(f.ctx(), func(tx *db.Tx) error {
				messageID, err = Message(tx, st.Run, "go on")
				return err
			})
			return messageID, err
		}
		if _, err := say(); fault.From(err).Slug != "no_live_channel" {
			t.Errorf("message to a run that has not begun: %v", err)
		}
		f.mustSay(f.boxes[0], st, 1, started()...)
		messageID, err := say()
		if err != nil {
			t.Fatal(err)
		}
		if sent := f.commands.of(f.boxes[0]); len(sent) != 1 || sent[0].ID != messageID || sent[0].Text != "go on" ||
			sent[0].Run != st.Run {
			t.Fatalf("commands %+v", sent)
		}
		want := func(status, reply string) {
			t.Helper()
			got, err := f.AwaitMessage(f.ctx(), st.Run, messageID, 0)
			if err != nil || got != (MessageOutcome{status, reply}) {
				t.Errorf("the message is %+v, %v; want %s", got, err, status)
			}
		}
		want(MessageUnconfirmed, "")
		for i, c := range []struct {
			m    protocol.UserMessage
			want string
		}{
			{protocol.UserMessage{State: protocol.MessageQueued, Text: "go on"}, MessageQueued},
			{protocol.UserMessage{State: protocol.MessageDelivered}, MessageRead},
			{protocol.UserMessage{State: protocol.MessageRead, Reply: "gone"}, MessageReplied},
		} {
			c.m.ID = messageID
			f.mustSay(f.boxes[0], st, int64(5+i), ev(protocol.EventMessage, c.m))
			want(c.want, c.m.Reply)
		}
		if messageID, err = say(); err != nil {
			t.Fatal(err)
		}
		f.mustSay(f.boxes[0], st, 8, finished(protocol.Finished{State: protocol.Failed, Kind: task.AgentError, Error: "boom"}))
		want(MessageDropped, "")
		f.write(func(tx *db.Tx) error {
			woken, err := Wake(tx, st.Run, "hello")
			if woken {
				t.Error("an ended run was woken")
			}
			return err
		})
		if _, err := f.AwaitMessage(f.ctx(), strings.Repeat("0", 8), messageID, 0); !fault.IsKind(err, fault.NotFound) {
			t.Errorf("unknown run: %v", err)
		}
	})
}

// What an agent wishes for a pull request is sent on, up to the limit of declarations, and
// not when it cannot be read.
func TestActionProposed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		var got []protocol.ActionProposed
		ActionProposed.On(f.DB, func(_ *db.Tx, d Declaration[protocol.ActionProposed]) error {
			if d.Declared.Kind == "merge" {
				return fault.Field("kind", "is not wanted")
			}
			got = append(got, d.Declared)
			return nil
		})
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		events := append(started(), ev(protocol.EventAction, map[string]any{"pull": "one"}),
			ev(protocol.EventAction, protocol.ActionProposed{ID: "1", Pull: 7, Kind: "merge", Why: "w"}),
			ev(protocol.EventAction, protocol.ActionProposed{ID: "2", Pull: 7, Kind: "close", Why: "w"}))
		f.mustSay(f.boxes[0], st, 1, events...)
		if len(got) != 1 || got[0] != (protocol.ActionProposed{ID: "2", Pull: 7, Kind: "close", Why: "w"}) {
			t.Errorf("%+v", got)
		}
		var more []protocol.Event
		for range protocol.MaxDeclared + 5 {
			more = append(more, ev(protocol.EventAction, protocol.ActionProposed{ID: "x", Pull: 7, Kind: "close", Why: "w"}))
		}
		f.mustSay(f.boxes[0], st, int64(len(events)+1), more...)
		if len(got) != protocol.MaxDeclared-2 {
			t.Errorf("%d sent on", len(got))
		}
	})
}

// TestForkDeclaresNothing holds that a run about a fork is told that it is mute, and that
// nothing it declares reaches another domain or its result, whatever its box says.
func TestForkDeclaresNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		heard := 0
		AskFiled.On(f.DB, func(*db.Tx, Declaration[protocol.AskFiled]) error { heard++; return nil })
		ActionProposed.On(f.DB, func(*db.Tx, Declaration[protocol.ActionProposed]) error { heard++; return nil })
		BlockerDeclared.On(f.DB, func(*db.Tx, Declaration[protocol.BlockerDeclared]) error { heard++; return nil })
		for _, given := range reach.Texts() {
			f.others.text = given
			mute := given == reach.Fork
			taskID := f.create(task.KindWork)
			st := f.claim(f.boxes[0])
			if st.Mute != mute || strings.Contains(st.Prompt, "YARDMASTER_OUTBOX") == mute {
				t.Errorf("%s: mute is %v; %s", given, st.Mute, st.Prompt)
			}
			heard = 0
			f.mustSay(f.boxes[0], st, 1, append(started(),
				ev(protocol.EventAsk, protocol.AskFiled{ID: "1", Title: "More", Body: "b"}),
				ev(protocol.EventAction, protocol.ActionProposed{ID: "2", Pull: 1, Kind: "close", Why: "w"}),
				ev(protocol.EventBlocker, protocol.BlockerDeclared{ID: "3", Kind: "decision", Question: "How?"}))...)
			out, err := f.result(f.ctx(), idIn{taskID})
			if err != nil || (heard == 0) != mute || (len(out.RawTasks) == 0) != mute || (out.Blocker == nil) != mute {
				t.Errorf("%s: %d were heard, and the result is %+v, %v", given, heard, out, err)
			}
			f.mustSay(f.boxes[0], st, 7, finished(protocol.Finished{State: protocol.Failed, Kind: task.AgentError}))
			f.pass(time.Hour)
		}
	})
}
