package transcript

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/api/op"
)

// overMCP turns a step's request into a call of the same capability as a tool. It
// returns false for steps about HTTP only, such as cookies, other headers, and bodies
// that are no JSON object; these stay with REST.
func (s step) overMCP(o op.Op, target, body string, header []string) (frame string, ok bool) {
	for i := 0; i < len(header); i += 2 {
		token := header[i] == "Authorization" &&
			strings.HasPrefix(header[i+1], "Bearer dev_") // not the token of a fix link, which opens two addresses only
		if !token && header[i] != "Idempotency-Key" {
			return "", false
		}
	}
	for _, h := range s.answer.header {
		if !slices.Contains([]string{"X-Idempotent-Replayed", "Cache-Control", "Retry-After"}, h[0]) {
			return "", false
		}
	}
	args := map[string]json.RawMessage{}
	if body != "" && json.Unmarshal([]byte(body), &args) != nil {
		return "", false
	}
	at, err := url.Parse(target)
	if err != nil {
		return "", false
	}
	input, _ := mcp.Schemas(&o)
	put := func(name string, value any) {
		b, err := json.Marshal(value)
		if err != nil || args[name] != nil {
			ok = false
			return
		}
		args[name] = b
	}
	ok = true
	pattern, path := strings.Split(o.Path, "/"), strings.Split(at.EscapedPath(), "/")
	for i, seg := range pattern {
		name, isParam := strings.CutPrefix(strings.TrimSuffix(seg, "}"), "{")
		if !isParam {
			continue
		}
		text := path[i]
		if rest, all := strings.CutSuffix(name, "..."); all {
			name, text = rest, strings.Join(path[i:], "/")
		}
		if text, err = url.PathUnescape(text); err != nil {
			return "", false
		}
		put(name, text)
	}
	for name, values := range at.Query() {
		switch kind := kindOf(input.Properties[name]); {
		case kind == "array":
			put(name, values)
		case len(values) > 1:
			return "", false
		case kind == "integer":
			if n, err := strconv.Atoi(values[0]); err == nil {
				put(name, n)
				break
			}
			put(name, values[0])
		case kind == "boolean" && (values[0] == "true" || values[0] == "false"):
			put(name, values[0] == "true")
		default:
			put(name, values[0])
		}
	}
	b, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0",
		"id":      1,
		"method":  "tools/call",
		"params":  map[string]any{"name": o.ID, "arguments": args},
	})
	return string(b), ok && err == nil
}

// kindOf returns the type of a schema other than null.
func kindOf(s *jsonschema.Schema) string {
	if s == nil {
		return ""
	}
	for _, kind := range append([]string{s.Type}, s.Types...) {
		if kind != "" && kind != "null" {
			return kind
		}
	}
	for _, x := range slices.Concat(s.AnyOf, s.OneOf) {
		if kind := kindOf(x); kind != "" {
			return kind
		}
	}
	return ""
}

// unwrap turns the answer to a call of a tool into the answer of REST. A result does
// not tell which success of the row it is; unwrap takes it to be the wanted one.
func (a answer) unwrap(o op.Op, want string) (answer, error) {
	if a.StatusCode != http.StatusOK {
		return a, nil // refused before the tool was called
	}
	var f struct {
		Result *struct {
			Content           []struct{ Type, Text string }
			StructuredContent json.RawMessage
			IsError           bool
			Meta              map[string]any `json:"_meta"`
		}
	}
	if err := json.Unmarshal(a.body, &f); err != nil {
		return a, err
	}
	if f.Result == nil || len(f.Result.Content) != 1 || f.Result.Content[0].Type != "text" {
		return a, fmt.Errorf("no result of one text: %s", a.body)
	}
	var inText, structured any
	if json.Unmarshal([]byte(f.Result.Content[0].Text), &inText) != nil ||
		json.Unmarshal(f.Result.StructuredContent, &structured) != nil || !reflect.DeepEqual(inText, structured) {
		return a, fmt.Errorf("text and content differ: %s", a.body)
	}
	out := answer{Response: new(http.Response), body: f.Result.StructuredContent}
	*out.Response = *a.Response
	out.Header = a.Header.Clone()
	if f.Result.Meta["yardmaster/idempotent-replayed"] == true {
		out.Header.Set("X-Idempotent-Replayed", "true")
	}
	if !f.Result.IsError {
		if out.StatusCode = o.Status; slices.ContainsFunc(o.Also, func(status int) bool { return strconv.Itoa(status) == want }) {
			out.StatusCode, _ = strconv.Atoi(want)
		}
		return out, nil
	}
	var p struct{ Status int }
	if err := json.Unmarshal(out.body, &p); err != nil || p.Status < 400 {
		return a, fmt.Errorf("a refusal that is no problem: %s", out.body)
	}
	out.StatusCode = p.Status
	out.Header.Set("Content-Type", "application/problem+json")
	return out, nil
}

// toolJudge validates calls against the descriptions of their tools in tools/list, as
// clients do.
type toolJudge struct {
	mu   sync.Mutex
	made map[string][2]*jsonschema.Resolved
}

var theToolJudge = toolJudge{made: map[string][2]*jsonschema.Resolved{}}

func (j *toolJudge) schemas(o op.Op) (_ [2]*jsonschema.Resolved, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.made[o.ID]
	if !ok {
		input, output := mcp.Schemas(&o)
		if r[0], err = input.Resolve(nil); err != nil {
			return r, err
		}
		if r[1], err = output.Resolve(nil); err != nil {
			return r, err
		}
		j.made[o.ID] = r
	}
	return r, nil
}

func (j *toolJudge) call(o op.Op, frame string, a answer) error {
	r, err := j.schemas(o)
	if err != nil {
		return err
	}
	var out any
	if err := json.Unmarshal(a.body, &out); err != nil {
		return err
	}
	if err := r[1].Validate(out); err != nil {
		return fmt.Errorf("the answer is not as the tool says: %w\n%s", err, a.body)
	}
	if a.StatusCode >= 300 {
		return nil
	}
	var f struct{ Params struct{ Arguments any } }
	if err := json.Unmarshal([]byte(frame), &f); err != nil {
		return err
	}
	if err := r[0].Validate(f.Params.Arguments); err != nil {
		return fmt.Errorf("the arguments were taken and are not as the tool says: %w", err)
	}
	return nil
}

// call calls a capability as a tool.
func (k *talk) call(o op.Op, frame, bearer, want string, header []string) (answer, error) {
	return k.send(http.MethodPost, mcp.Path, bearer, frame, header...).unwrap(o, want)
}
