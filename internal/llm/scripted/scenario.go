// Package scripted imitates a language model: an HTTP handler that speaks the wire
// forms of the real ones and answers from a scenario file. It lets the whole
// product run offline, and it is the far peer of the tests.
//
// A scenario is a list of abstract steps: write this file, run this command, say
// this. The server plays each step with the tool that the calling agent offers for
// it, so one scenario drives every agent. The server stores no conversation: the
// number of tool results after the prompt that selected the scenario is the number
// of the step, so resumed, parallel and retried sessions work. An answer, including
// its ids, depends on the request alone; only a step with fail.times counts.
package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Scenarios is a parsed scenario file:
//
//	scenarios:
//	  - name: fix-test
//	    match: failing test        # in a prompt; /between slashes/ a regular expression
//	    steps:
//	      - shell: go test ./...
//	      - edit: {path: sum.go, old: a - b, new: a + b}
//	      - text: The test passes now.
//	        slow_ms: 20
//
// The first scenario that matches a prompt is played.
type Scenarios struct {
	list []scenario
}

type scenario struct {
	Name  string `yaml:"name"`
	Match string `yaml:"match"`
	Model string `yaml:"model"`
	// WithoutTools marks a scenario for requests that offer no tools, such as a
	// verdict or a title. Such requests are never answered from other scenarios.
	WithoutTools bool   `yaml:"without_tools"`
	Steps        []step `yaml:"steps"`

	pattern *regexp.Regexp
}

// step is at most one call of a tool, optionally with a text before it.
type step struct {
	Text   string     `yaml:"text"`
	Write  *writeStep `yaml:"write"`
	Edit   *editStep  `yaml:"edit"`
	Shell  string     `yaml:"shell"`
	Read   string     `yaml:"read"`
	Search string     `yaml:"search"`
	Tool   *toolStep  `yaml:"tool"`

	DelayMS int        `yaml:"delay_ms"` // before the answer begins
	SlowMS  int        `yaml:"slow_ms"`  // between the words of a streamed text
	Fail    *failStep  `yaml:"fail"`
	Usage   *usageStep `yaml:"usage"`
}

type writeStep struct {
	Path    string `yaml:"path"`
	Content string `yaml:"content"`
}

// editStep replaces a part of a file; agents that edit by patch need whole lines.
type editStep struct {
	Path string `yaml:"path"`
	Old  string `yaml:"old"`
	New  string `yaml:"new"`
}

// toolStep calls the tool with the name, or whose name ends with it.
type toolStep struct {
	Name string         `yaml:"name"`
	Args map[string]any `yaml:"args"`
}

// failStep answers an HTTP error in place of the step: to the first Times requests
// for it, or to every one when Times is 0.
type failStep struct {
	Status      int `yaml:"status"`
	Times       int `yaml:"times"`
	RetryAfterS int `yaml:"retry_after_s"`
}

// usageStep replaces the token counts that the server estimates from sizes. Input
// includes neither of the cache counts.
type usageStep struct {
	Input      int `yaml:"input"`
	Output     int `yaml:"output"`
	CacheRead  int `yaml:"cache_read"`
	CacheWrite int `yaml:"cache_write"`
}

const maxDelayMS = 10 * 60 * 1000

// ParseScenarios reads a scenario file. It fails for an unknown field.
func ParseScenarios(text []byte) (*Scenarios, error) {
	var file struct {
		Scenarios []scenario `yaml:"scenarios"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("scenario file: %w", err)
	}
	if len(file.Scenarios) == 0 {
		return nil, fmt.Errorf("scenario file: there are no scenarios")
	}
	names := map[string]bool{}
	for i := range file.Scenarios {
		s := &file.Scenarios[i]
		if s.Name == "" {
			return nil, fmt.Errorf("scenario file: scenario %d has no name", i+1)
		}
		if names[s.Name] {
			return nil, fmt.Errorf("scenario file: there are two scenarios %q", s.Name)
		}
		names[s.Name] = true
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("scenario file: %s: %w", s.Name, err)
		}
	}
	return &Scenarios{file.Scenarios}, nil
}

func (s *scenario) check() error {
	if m := s.Match; len(m) > 2 && m[0] == '/' && m[len(m)-1] == '/' {
		var err error
		if s.pattern, err = regexp.Compile(m[1 : len(m)-1]); err != nil {
			return fmt.Errorf("match: %w", err)
		}
	}
	if len(s.Steps) == 0 {
		return fmt.Errorf("there are no steps")
	}
	for i, st := range s.Steps {
		if err := st.check(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if s.WithoutTools && (st.calls() > 0 || i > 0) {
			return fmt.Errorf("step %d: a scenario without tools is one step of text", i+1)
		}
	}
	return nil
}

func (st step) calls() int {
	n := 0
	for _, set := range []bool{st.Write != nil, st.Edit != nil, st.Shell != "", st.Read != "", st.Search != "", st.Tool != nil} {
		if set {
			n++
		}
	}
	return n
}

func (st step) check() error {
	switch n := st.calls(); {
	case n > 1:
		return fmt.Errorf("a step is one of write, edit, shell, read, search and tool, not %d of them", n)
	case n == 0 && st.Text == "" && st.Fail == nil:
		return fmt.Errorf("the step does nothing")
	}
	if st.Write != nil && st.Write.Path == "" || st.Edit != nil && (st.Edit.Path == "" || st.Edit.Old == "") {
		return fmt.Errorf("write needs a path, edit a path and the old text")
	}
	if st.Tool != nil {
		if st.Tool.Name == "" {
			return fmt.Errorf("tool needs a name")
		}
		if _, err := json.Marshal(st.Tool.Args); err != nil {
			return fmt.Errorf("the arguments of %s are no JSON object: %w", st.Tool.Name, err)
		}
	}
	if st.DelayMS < 0 || st.SlowMS < 0 || st.DelayMS > maxDelayMS || st.SlowMS > maxDelayMS {
		return fmt.Errorf("delay_ms and slow_ms are between 0 and %d", maxDelayMS)
	}
	if f := st.Fail; f != nil && (f.Status < 400 || f.Status > 599 || f.Times < 0 || f.RetryAfterS < 0) {
		return fmt.Errorf("fail needs a status between 400 and 599, and counts that are not negative")
	}
	if u := st.Usage; u != nil && min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 {
		return fmt.Errorf("usage is not negative")
	}
	return nil
}

// models are the names that requests can ask for: the models of the scenarios, or
// scripted-1 if no scenario names one.
func (s *Scenarios) models() []string {
	var names []string
	for _, sc := range s.list {
		if sc.Model != "" && !slices.Contains(names, sc.Model) {
			names = append(names, sc.Model)
		}
	}
	if len(names) == 0 {
		names = []string{"scripted-1"}
	}
	return names
}

func (s *scenario) fits(model, prompt string) bool {
	switch {
	case s.Model != "" && s.Model != model:
		return false
	case s.pattern != nil:
		return s.pattern.MatchString(prompt)
	}
	return strings.Contains(prompt, s.Match)
}

// Fixed answers.
const (
	titleText   = "Scripted session"
	unknownText = "The scripted model has no scenario for this prompt."
	doneText    = "Done."
)

// choose finds the scenario and the step to play. Each prompt that matches a
// scenario starts that scenario; each tool result after it advances it by a step.
func (s *Scenarios) choose(t *turn) (string, step) {
	var playing *scenario
	at := 0
	for _, e := range t.events {
		if e.result {
			at++
			continue
		}
		for i := range s.list {
			sc := &s.list[i]
			if sc.WithoutTools == (len(t.tools) == 0) && sc.fits(t.model, e.prompt) {
				playing, at = sc, 0
				break
			}
		}
	}
	switch {
	case playing != nil && at < len(playing.Steps):
		return fmt.Sprintf("%s/%d", playing.Name, at), playing.Steps[at]
	case playing != nil:
		return playing.Name, step{Text: doneText}
	case len(t.tools) == 0:
		return "", step{Text: titleText}
	}
	return "", step{Text: unknownText}
}
