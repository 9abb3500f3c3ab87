package answer_test

import (
	gocmp "cmp"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/llm/answer"
	"yardmaster/internal/llm/frames"
	"yardmaster/internal/proof/recorded"
)

// apis are the wire forms by their names in the table.
var apis = map[string]answer.API{
	"anthropic.messages": answer.Messages, "openai.chat": answer.Chat, "openai.responses": answer.Responses,
	"google.generate": answer.Gemini, "bedrock.invoke": answer.Messages, "bedrock.converse": answer.Messages,
}

// pieces are those of an answer as a reader gets them, and what breaks the last one off. Frames
// have been read before.
func pieces(a *recorded.Answer) (all [][]byte, h http.Header, broken error) {
	if a.Torn() {
		broken = io.ErrUnexpectedEOF
	}
	if a.Header.Get("Content-Type") != frames.Type {
		return a.Pieces, a.Header, broken
	}
	in := frames.Events(io.NopCloser(&piecewise{slices.Clone(a.Pieces), broken}))
	for {
		piece := make([]byte, 4096)
		n, err := in.Read(piece)
		if all = append(all, piece[:n]); err != nil {
			if err == io.EOF {
				err = nil
			}
			return all, http.Header{"Content-Type": {"text/event-stream"}}, err
		}
	}
}

// piecewise gives one piece a read.
type piecewise struct {
	left   [][]byte
	broken error
}

func (p *piecewise) Read(to []byte) (int, error) {
	for len(p.left) > 0 && len(p.left[0]) == 0 {
		p.left = p.left[1:]
	}
	if len(p.left) == 0 {
		return 0, gocmp.Or(p.broken, io.EOF)
	}
	n := copy(to, p.left[0])
	p.left[0] = p.left[0][n:]
	return n, nil
}

// play reads an answer in its pieces.
func play(api answer.API, a *recorded.Answer) (*answer.Reader, recorded.Want) {
	all, header, broken := pieces(a)
	o := answer.Options{API: api, Status: a.Status, Header: header, Keep: true}
	if a.None {
		o.Status = http.StatusOK
	}
	var said strings.Builder
	o.Text = func(text string) { said.WriteString(text) }
	r := answer.New(o)
	for _, p := range all {
		r.Write(p)
	}
	r.End(broken)
	w := wanted(r.Answer())
	if said.String() != w.Text+w.Refusal {
		w.Text = "what was said as it came is another text: " + said.String()
	}
	return r, w
}

// wanted puts an answer into the form of the table.
func wanted(a answer.Answer) recorded.Want {
	w := recorded.Want{Text: a.Text, Refusal: a.Refusal, Stop: string(a.Stop), StopRaw: a.Reason}
	for _, t := range a.Thinking {
		w.Thinking = append(w.Thinking, recorded.Thought(t))
	}
	tools := func(calls []answer.Tool) (out []recorded.Tool) {
		for _, c := range calls {
			t := recorded.Tool{ID: c.ID, Name: c.Name, Signature: c.Signature}
			var object map[string]any
			if json.Unmarshal(c.Arguments, &object) == nil && object != nil {
				t.Arguments = object
			} else {
				t.Text = string(c.Arguments)
			}
			out = append(out, t)
		}
		return out
	}
	w.Tools, w.ServerTools = tools(a.Tools), tools(a.Served)
	if u := a.Usage; u != nil {
		w.Usage = &recorded.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite5m: u.CacheWrite,
			CacheWrite1h: u.CacheWrite1h, Reasoning: u.Reasoning, Cost: u.Cost}
	}
	if f := a.Failure; f != nil {
		w.AnotherRoute = f.Elsewhere
		w.Error = &recorded.Failure{Kind: string(f.Kind)}
		if f.RetryAfter != nil {
			ms := f.RetryAfter.Milliseconds()
			w.Error.RetryAfterMS = &ms
		}
		if f.Limit > 0 {
			w.Error.Limit, w.Error.Asked = &f.Limit, &f.Asked
		}
	}
	return w
}

// Every recorded answer comes out as its table says, in its own pieces and in others.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	plays := 0
	for _, c := range recorded.Served(t) {
		variants := []string{""}
		if !c.Answer.None {
			variants = append(variants, c.Answer.Variants()...)
		}
		for _, how := range variants {
			a := c.Answer
			if how != "" {
				var err error
				if a, err = a.Vary(how); err != nil {
					t.Fatal(err)
				}
			}
			plays++
			r, got := play(apis[c.API], a)
			if d := cmp.Diff(c.Want, got); d != "" {
				t.Errorf("%s~%s: %s\n%s", c.Name, how, c.About, d)
				break
			}
			if r.Begun() != got.Begun() {
				t.Errorf("%s~%s: that content has come is %v", c.Name, how, r.Begun())
			}
			counted(t, c.Name, apis[c.API], a, got)
		}
	}
	if plays < 1900 {
		t.Errorf("only %d plays", plays)
	}
}

// counted holds that a reader that keeps nothing judges and counts the same.
func counted(t *testing.T, name string, api answer.API, a *recorded.Answer, want recorded.Want) {
	t.Helper()
	all, header, broken := pieces(a)
	r := answer.New(answer.Options{API: api, Status: max(a.Status, 200), Header: header})
	for _, p := range all {
		r.Write(p)
	}
	r.End(broken)
	got := wanted(r.Answer())
	if d := cmp.Diff([]any{want.Usage, want.Error, want.AnotherRoute}, []any{got.Usage, got.Error, got.AnotherRoute}); d != "" {
		t.Errorf("%s is counted otherwise: %s", name, d)
	}
	if got.Text != "" || r.Begun() != want.Begun() {
		t.Errorf("%s: begun %v, kept %q", name, r.Begun(), got.Text)
	}
}

// An answer that is cut behind or in any of its events never passes for whole.
func TestRecordedAnswersCut(t *testing.T) {
	t.Parallel()
	plays := 0
	for _, c := range recorded.Served(t) {
		if c.Answer.None || c.Answer.Status/100 != 2 {
			continue
		}
		for _, how := range c.Answer.Cuts() {
			a, err := c.Answer.Vary(how)
			if err != nil {
				t.Fatal(err)
			}
			plays++
			_, got := play(apis[c.API], a)
			if why := recorded.CutIsRight(c.Want, got, strings.HasPrefix(how, "close")); why != "" {
				t.Errorf("%s~%s: %s: %+v %+v", c.Name, how, why, got, got.Error)
			}
		}
	}
	if plays < 2000 {
		t.Errorf("only %d plays", plays)
	}
}
