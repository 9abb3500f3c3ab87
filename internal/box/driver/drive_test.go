package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/box/acp"
)

// fakeAgent is the far end of Drive's pipes: a script that reads what the
// client sent and answers by hand.
type fakeAgent struct {
	t   *testing.T
	in  *bufio.Scanner
	out *io.PipeWriter
}

type request struct {
	ID     json.RawMessage
	Method string
	Params map[string]any
}

func (a *fakeAgent) want(method string) request {
	a.t.Helper()
	var r request
	if !a.in.Scan() {
		a.t.Errorf("the client ended where %s was due", method)
	} else if err := json.Unmarshal(a.in.Bytes(), &r); err != nil || r.Method != method {
		a.t.Errorf("the client sent %s where %s was due", a.in.Bytes(), method)
	}
	return r
}

func (a *fakeAgent) answer(r request, result string) {
	fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", r.ID, result)
}

func (a *fakeAgent) refuse(r request, code int, text string) {
	fmt.Fprintf(a.out, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", r.ID, code, text)
}

func (a *fakeAgent) update(body string) {
	fmt.Fprintf(a.out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}`+"\n", body)
}

func (a *fakeAgent) say(text string) {
	a.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}`, text))
}

func (a *fakeAgent) open(session string) {
	a.answer(a.want("initialize"), `{"protocolVersion":1,"agentInfo":{"name":"fake","version":"9.1"}}`)
	a.answer(a.want("session/new"), session)
}

// drive runs Drive against a script in a bubble of fake time.
func drive(t *testing.T, launch Launch, msgs <-chan Message, h Hooks, script func(*fakeAgent, context.CancelFunc),
	check func(Outcome, error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		agentIn, stdin := io.Pipe()
		stdout, agentOut := io.Pipe()
		scripted := make(chan struct{})
		go func() {
			defer close(scripted)
			defer agentOut.Close()
			a := &fakeAgent{t, bufio.NewScanner(agentIn), agentOut}
			script(a, cancel)
			for a.in.Scan() { // until Drive closes its end
			}
		}()
		out, err := Drive(ctx, launch, stdin, stdout, "do it", msgs, h)
		<-scripted
		synctest.Wait()
		check(out, err)
	})
}

const plain = `{"sessionId":"s"}`

func TestDriveOneTurn(t *testing.T) {
	var started string
	var updates, asked int
	h := Hooks{
		Started:    func(session, version string) { started = session + " " + version },
		Update:     func(json.RawMessage) { updates++ },
		Permission: func(json.RawMessage) { asked++ },
	}
	drive(t, Launch{Dir: "/task", Mode: "free", Model: "m1"}, nil, h, func(a *fakeAgent, _ context.CancelFunc) {
		a.answer(a.want("initialize"), `{"protocolVersion":1,"agentInfo":{"name":"fake","version":"9.1"}}`)
		r := a.want("session/new")
		if r.Params["cwd"] != "/task" {
			t.Errorf("cwd %v", r.Params["cwd"])
		}
		a.answer(r, `{"sessionId":"s","modes":{"currentModeId":"ask","availableModes":[{"id":"ask"},{"id":"free"}]},`+
			`"configOptions":[{"id":"think","category":"thought_level","currentValue":true},{"id":"model","category":"model",`+
			`"currentValue":"box/m0",`+
			`"options":[{"group":"g","name":"G","options":[{"value":"box/m0"},{"value":"box/m1"}]}]}]}`)
		r = a.want("session/set_mode")
		if r.Params["modeId"] != "free" {
			t.Errorf("mode %v", r.Params)
		}
		a.answer(r, `{}`)
		r = a.want("session/set_config_option")
		if r.Params["configId"] != "model" || r.Params["value"] != "box/m1" {
			t.Errorf("model %v", r.Params)
		}
		a.answer(r, `{}`)
		p := a.want("session/prompt")
		a.say("Looking.")
		fmt.Fprintln(a.out, `{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{},`+
			`"options":[{"optionId":"always","kind":"allow_always"},{"optionId":"once","kind":"allow_once"}]}}`)
		if a.in.Scan(); !strings.Contains(a.in.Text(), `"optionId":"once"`) {
			t.Errorf("the permission was answered %s", a.in.Text())
		}
		a.update(`{"sessionUpdate":"tool_call","toolCallId":"1"}`)
		a.say("All ")
		a.update(`{"sessionUpdate":"tool_call_update","toolCallId":"1"}`)
		a.say("done. ")
		a.answer(p, `{"stopReason":"end_turn"}`)
	}, func(out Outcome, err error) {
		want := Outcome{Stop: "end_turn", SessionID: "s", FinalText: "All done.", Turns: 1}
		if err != nil || out != want {
			t.Errorf("%+v, %v", out, err)
		}
		if started != "s 9.1" || updates != 5 || asked != 1 {
			t.Errorf("started %q, %d updates, asked %d times", started, updates, asked)
		}
	})
}

func TestMessagesWaitForTheTurnAndInterruptsGoFirst(t *testing.T) {
	msgs := make(chan Message, 3)
	var prompted []string
	h := Hooks{Prompted: func(m Message) { prompted = append(prompted, m.ID) }}
	text := func(r request) any { return r.Params["prompt"].([]any)[0].(map[string]any)["text"] }
	drive(t, Launch{}, msgs, h, func(a *fakeAgent, _ context.CancelFunc) {
		a.open(plain)
		first := a.want("session/prompt")
		msgs <- Message{ID: "1", Text: "one"}
		msgs <- Message{ID: "2", Text: "two", Interrupt: true}
		msgs <- Message{ID: "3", Text: "three"}
		close(msgs)
		a.want("session/cancel")
		a.refuse(first, -32603, "aborted") // as some agents end a cancelled turn
		for _, want := range []string{"two", "one", "three"} {
			r := a.want("session/prompt")
			if text(r) != want {
				t.Errorf("prompt %v, want %s", text(r), want)
			}
			a.say("did " + want)
			a.answer(r, `{"stopReason":"end_turn"}`)
		}
	}, func(out Outcome, err error) {
		if err != nil || out.Turns != 4 || out.FinalText != "did three" || out.Stop != "end_turn" {
			t.Errorf("%+v, %v", out, err)
		}
		if !slices.Equal(prompted, []string{"2", "1", "3"}) {
			t.Errorf("prompted %v", prompted)
		}
	})
}

func TestCancelWaitsForTheTurn(t *testing.T) {
	drive(t, Launch{}, nil, Hooks{}, func(a *fakeAgent, cancel context.CancelFunc) {
		a.open(plain)
		p := a.want("session/prompt")
		cancel()
		a.want("session/cancel")
		a.say("stopped")
		a.answer(p, `{"stopReason":"end_turn"}`) // goose says so of cancelled turns
	}, func(out Outcome, err error) {
		if err != nil || out.Stop != "cancelled" || out.FinalText != "stopped" {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestCancelGivesUpAfterEightSeconds(t *testing.T) {
	var cancelled time.Time
	late := 0
	h := Hooks{Update: func(json.RawMessage) { late++ }}
	drive(t, Launch{}, nil, h, func(a *fakeAgent, cancel context.CancelFunc) {
		a.open(plain)
		a.want("session/prompt")
		cancelled = time.Now()
		cancel()
		a.want("session/cancel")
		for a.in.Scan() {
		}
		if d := time.Since(cancelled); d != cancelLimit {
			t.Errorf("gave up after %s", d)
		}
		a.say("too late")
	}, func(out Outcome, err error) {
		if err != nil || out.Stop != "cancelled" {
			t.Errorf("%+v, %v", out, err)
		}
		if late != 0 {
			t.Error("a hook ran after Drive had returned")
		}
	})
}

func TestAFailureThatIsOnlyWrittenOf(t *testing.T) {
	drive(t, Launch{Failed: []string{"Ran into"}}, nil, Hooks{}, func(a *fakeAgent, _ context.CancelFunc) {
		a.open(plain)
		p := a.want("session/prompt")
		a.say("Some warning\n\nRan into this error: 429 Too Many Requests\n\nPlease retry.")
		a.answer(p, `{"stopReason":"end_turn"}`)
	}, func(out Outcome, err error) {
		if FailureKind(err) != KindRateLimit || out.Stop != "end_turn" {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestAnAgentThatExits(t *testing.T) {
	drive(t, Launch{}, nil, Hooks{}, func(a *fakeAgent, _ context.CancelFunc) {
		a.open(plain)
		a.want("session/prompt")
		a.out.Close()
	}, func(_ Outcome, err error) {
		if !errors.Is(err, ErrAgentExited) || FailureKind(err) != KindCrashed {
			t.Errorf("%v", err)
		}
	})
}

func TestAnAgentThatNeverStarts(t *testing.T) {
	drive(t, Launch{}, nil, Hooks{}, func(a *fakeAgent, _ context.CancelFunc) {
		a.want("initialize")
	}, func(_ Outcome, err error) {
		if err == nil || !strings.Contains(err.Error(), "did not start within 2m") || FailureKind(err) != KindError {
			t.Errorf("%v", err)
		}
	})
}

func TestFailureKinds(t *testing.T) {
	for _, tc := range []struct {
		code       int
		text, want string
	}{
		{-32000, "Authentication required", KindAuth},
		{-32000, "sign in", KindAuth},
		{-32603, "401 This call does not carry the token of a run on this box.", KindError}, // no provider's refusal
		{-32603, "unexpected status 401 Unauthorized", KindAuth},
		{-32603, "API Error: 429 rate_limit_error", KindRateLimit},
		{-32603, "429: You exceeded your current quota (insufficient_quota)", KindQuota},
		{-32603, "exceeded retry limit, last status: 503 Service Unavailable", KindUnavailable},
		{-32603, "connect ECONNREFUSED 127.0.0.1:9", KindUnavailable},
		{-32603, "the model provider cut its answer short after 6 tries", KindUnavailable},
		{-32603, "the model provider's answer is not one of a model", KindUnavailable},
		{-32603, "the model provider failed: oops", KindUnavailable},
		{-32603, "The model `x` does not exist", KindModel},
		{-32603, "This model's maximum context length is 128000 tokens", KindContextOverflow},
		{-32603, "Internal error", KindError},
		{-32603, "exit status 1401", KindError},
	} {
		t.Run(tc.text, func(t *testing.T) {
			drive(t, Launch{}, nil, Hooks{}, func(a *fakeAgent, _ context.CancelFunc) {
				a.open(plain)
				a.refuse(a.want("session/prompt"), tc.code, tc.text)
			}, func(_ Outcome, err error) {
				var e *AgentError
				if !errors.As(err, &e) || e.Kind != tc.want || e.Code != tc.code || e.Message != tc.text {
					t.Errorf("%v, want %s", err, tc.want)
				}
			})
		})
	}
}

func TestAgentGetsTheServersThatItSpeaksTo(t *testing.T) {
	launch := Launch{Dir: "/task", Servers: []acp.MCPServer{{Type: acp.TransportHTTP, Name: "a"}, {Type: acp.TransportSSE, Name: "b"}}}
	for can, want := range map[string]string{`{}`: "", `{"http":true}`: "a", `{"http":true,"sse":true}`: "a b"} {
		var told acp.AgentCapabilities
		if err := json.Unmarshal([]byte(`{"mcpCapabilities":`+can+`}`), &told); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range supportedServers(told, launch.Servers) {
			got = append(got, m.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("an agent that says %s gets %q", can, got)
		}
	}
}
