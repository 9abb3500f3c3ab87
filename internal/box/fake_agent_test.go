package box_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/box/acp"
)

// The test binary is also the shim, the built-in agent and a whole box.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if inner, ok := box.Inner()[os.Args[1]]; ok {
			os.Exit(inner(os.Args[2:]))
		}
	}
	switch {
	case len(os.Args) == 2 && os.Args[1] == "agent":
		err := acp.Serve(context.Background(), os.Stdin, os.Stdout, func(p *acp.Peer) acp.Agent { return &actor{peer: p} })
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case os.Getenv("BOX_INSPECT") != "":
		os.Exit(inspectMain(os.Getenv("BOX_INSPECT")))
	case os.Getenv("BOX_CONFIG") != "":
		os.Exit(boxMain(os.Getenv("BOX_CONFIG")))
	}
	flag.Parse()
	parallel := false
	flag.Visit(func(f *flag.Flag) { parallel = parallel || f.Name == "test.parallel" })
	if !parallel { // the tests spend most of their time waiting for processes
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// actor is a coding agent whose prompts are its script, one step a line.
type actor struct{ peer *acp.Peer }

func (a *actor) Initialize(context.Context, acp.InitializeRequest) (acp.InitializeResult, error) {
	return acp.InitializeResult{ProtocolVersion: acp.ProtocolVersion, AgentInfo: &acp.Implementation{Name: "actor", Version: "0.1"}}, nil
}

func (a *actor) NewSession(context.Context, acp.SessionRequest) (acp.Session, error) {
	return acp.Session{SessionID: "s1"}, nil
}

func (a *actor) Prompt(ctx context.Context, req acp.PromptRequest) (acp.PromptResult, error) {
	for line := range strings.SplitSeq(req.Prompt[0].Text, "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		var err error
		switch verb {
		case "say":
			err = a.say(req.SessionID, rest)
		case "write":
			path, text, _ := strings.Cut(rest, " ")
			err = os.WriteFile(path, []byte(text+"\n"), 0o644)
		case "report":
			err = os.WriteFile(os.Getenv("YARDMASTER_REPORT"), []byte(rest), 0o644)
		case "declare":
			name, text, _ := strings.Cut(rest, " ")
			err = os.WriteFile(filepath.Join(os.Getenv("YARDMASTER_OUTBOX"), name), []byte(text), 0o644)
		case "run":
			var out []byte
			if out, err = exec.Command("sh", "-c", rest).CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		case "commit":
			var out []byte
			if out, err = exec.Command("sh", "-c", "git add -A && git commit -q -m '"+rest+"'").CombinedOutput(); err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
		case "hold": // so many descriptors, until the agent is ended
			n, _ := strconv.Atoi(rest)
			for range n {
				if _, err := os.Open("/dev/null"); err != nil {
					break // there is no more to be had
				}
			}
			<-ctx.Done()
		case "try":
			_ = callModel(ctx) // as agents do that go on regardless
		case "model":
			err = callModel(ctx)
		case "fetch":
			err = a.say(req.SessionID, rest+": "+fetch(rest))
		case "raw": // a quoted line of the protocol, as it is
			var text string
			if text, err = strconv.Unquote(rest); err == nil {
				_, err = os.Stdout.WriteString(text + "\n")
			}
		case "leak":
			err = a.say(req.SessionID, "token "+os.Getenv("YARDMASTER_MODEL_TOKEN")+".")
		case "hang":
			<-ctx.Done()
			return acp.PromptResult{StopReason: acp.StopCancelled}, nil
		case "exit":
			os.Exit(0)
		case "stop":
			return acp.PromptResult{StopReason: rest}, nil
		}
		if err != nil {
			return acp.PromptResult{}, err
		}
	}
	return acp.PromptResult{StopReason: acp.StopEndTurn}, nil
}

// say ends with a character that begins no secret, because a possible beginning of
// a secret is held back.
func (a *actor) say(session, text string) error {
	text += "\n"
	return a.peer.Update(session, map[string]any{"sessionUpdate": acp.UpdateMessageChunk, "content": acp.Text(text)})
}

func callModel(ctx context.Context) error {
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("YARDMASTER_MODEL_URL")+"/v1/chat/completions",
		bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("YARDMASTER_MODEL_TOKEN"))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the model answered %s", resp.Status)
	}
	return nil
}

// fetch asks for an address by way of the proxy that the environment names.
func fetch(address string) string {
	proxy, err := url.Parse(os.Getenv("HTTP_PROXY"))
	if err != nil || proxy.Host == "" {
		return "no proxy"
	}
	resp, err := (&http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}).Get(address)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	return resp.Status
}
