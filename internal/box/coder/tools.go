package coder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/box/acp"
)

// tool is a tool of the model. parse checks the arguments and returns the action,
// without running it.
type tool struct {
	name, kind, description string
	schema                  object
	risky                   bool // it changes something; the user may want to be asked first
	parse                   func(s *session, args json.RawMessage) (action, error)
}

type action struct {
	title string
	path  string // relative to the working directory, if the action is about one file
	do    func(context.Context) (output, error)
}

// output is the result of a tool: text for the model, and content for people if it
// differs from the text.
type output struct {
	text    string
	content []any
}

var tools = []tool{
	{
		name: "read", kind: "read", parse: parseRead,
		description: "Read a text file of the checkout, with line numbers. " +
			"Give from and to (1-based, inclusive) for a part; at most 2000 lines are returned. A directory is listed.",
		schema: schema(object{
			"path": object{"type": "string", "description": "path in the checkout"},
			"from": object{"type": "integer"},
			"to":   object{"type": "integer"},
		}, "path"),
	},
	{
		name: "edit", kind: "edit", risky: true, parse: parseEdit,
		description: "Change a file by replacing old_string, which must occur exactly once unless replace_all is set " +
			"and must match to the last blank, with new_string. " +
			"An empty old_string creates a file that does not exist yet, directories included.",
		schema: schema(object{
			"path":        object{"type": "string", "description": "path in the checkout"},
			"old_string":  object{"type": "string"},
			"new_string":  object{"type": "string"},
			"replace_all": object{"type": "boolean"},
		}, "path", "old_string", "new_string"),
	},
	{
		name: "search", kind: "search", parse: parseSearch,
		description: "Search the files of the checkout for a regular expression (RE2), line by line. " +
			"Hidden version control data, binary files and files over 1 MiB are passed over. Answers path:line: text.",
		schema: schema(object{
			"pattern": object{"type": "string"},
			"path":    object{"type": "string", "description": "directory or file to search; default the whole checkout"},
			"glob":    object{"type": "string", "description": "file name pattern such as *.go"},
		}, "pattern"),
	},
	{
		name: "shell", kind: "execute", risky: true, parse: parseShell,
		description: "Run a command with bash -lc in the checkout. " +
			"Answers its output, both streams, and the exit code. The default limit is 120 s, the most 1800 s.",
		schema: schema(object{
			"command":   object{"type": "string"},
			"timeout_s": object{"type": "integer"},
		}, "command"),
	},
}

func schema(properties object, required ...string) object {
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func decodeArgs(raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the arguments are not valid: %w", err)
	}
	return nil
}

const (
	maxFile  = 10 << 20 // bytes of a file that can be read or edited
	maxLines = 2000
	maxLine  = 2000     // bytes shown of a line
	maxText  = 48 << 10 // bytes of one result
)

// local turns a path from the model into one relative to the working directory.
// os.Root keeps it inside, whatever links are on the way.
func (s *session) local(path string) (string, error) {
	if path == "" {
		return "", errors.New("path is required")
	}
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(s.cwd, path)
		if err != nil {
			return "", err
		}
		path = rel
	}
	path = filepath.Clean(path)
	if !filepath.IsLocal(path) {
		return "", fmt.Errorf("%s is outside the working directory", path)
	}
	return path, nil
}

func (s *session) readFile(path string) ([]byte, error) {
	info, err := s.root.Stat(path) // before Open, which would block on a pipe
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s has %d bytes, more than this tool reads; use the shell", path, info.Size())
	}
	f, err := s.root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

func parseRead(s *session, raw json.RawMessage) (action, error) {
	var args struct {
		Path     string
		From, To int
	}
	if err := decodeArgs(raw, &args); err != nil {
		return action{}, err
	}
	path, err := s.local(args.Path)
	if err != nil {
		return action{}, err
	}
	return action{title: "Read " + path, path: path, do: func(context.Context) (output, error) {
		if info, err := s.root.Stat(path); err == nil && info.IsDir() {
			return s.list(path)
		}
		b, err := s.readFile(path)
		if err != nil {
			return output{}, err
		}
		if !utf8.Valid(b) {
			return output{}, fmt.Errorf("%s is not a text file", path)
		}
		return output{text: numbered(string(b), args.From, args.To)}, nil
	}}, nil
}

func (s *session) list(path string) (output, error) {
	entries, err := fs.ReadDir(s.root.FS(), filepath.ToSlash(path))
	if err != nil {
		return output{}, err
	}
	var out strings.Builder
	for i, e := range entries {
		if i == maxLines {
			fmt.Fprintf(&out, "[%d more]\n", len(entries)-i)
			break
		}
		out.WriteString(e.Name())
		if e.IsDir() {
			out.WriteByte('/')
		}
		out.WriteByte('\n')
	}
	return output{text: out.String()}, nil
}

// numbered returns the lines from from to to, counted from 1, with numbers; to
// below 1 means the last line.
func numbered(text string, from, to int) string {
	if text == "" {
		return "[the file is empty]"
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	from = max(from, 1)
	if to < 1 || to > len(lines) {
		to = len(lines)
	}
	if from > to {
		return fmt.Sprintf("[no such lines: the file has %d]", len(lines))
	}
	var out strings.Builder
	for n := from; n <= to; n++ {
		if n-from == maxLines || out.Len() > maxText {
			fmt.Fprintf(&out, "[cut: lines %d to %d follow]\n", n, to)
			break
		}
		fmt.Fprintf(&out, "%6d\t%s\n", n, clip(lines[n-1]))
	}
	return out.String()
}

func clip(line string) string {
	if len(line) <= maxLine {
		return line
	}
	return strings.ToValidUTF8(line[:maxLine], "") + " [cut]"
}

func parseEdit(s *session, raw json.RawMessage) (action, error) {
	var args struct {
		Path       string
		Old        string `json:"old_string"`
		New        string `json:"new_string"`
		ReplaceAll bool   `json:"replace_all"`
	}
	if err := decodeArgs(raw, &args); err != nil {
		return action{}, err
	}
	path, err := s.local(args.Path)
	if err != nil {
		return action{}, err
	}
	diff := func(old any) []any {
		return []any{object{"type": "diff", "path": filepath.Join(s.cwd, path), "oldText": old, "newText": args.New}}
	}
	if args.Old == "" {
		return action{title: "Create " + path, path: path, do: func(context.Context) (output, error) {
			if err := s.create(path, args.New); err != nil {
				return output{}, err
			}
			return output{text: "created " + path, content: diff(nil)}, nil
		}}, nil
	}
	return action{title: "Edit " + path, path: path, do: func(context.Context) (output, error) {
		n, err := s.replace(path, args.Old, args.New, args.ReplaceAll)
		if err != nil {
			return output{}, err
		}
		return output{text: fmt.Sprintf("replaced %d in %s", n, path), content: diff(args.Old)}, nil
	}}, nil
}

func (s *session) create(path, content string) error {
	if err := s.root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := s.root.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; give the text to replace in old_string", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

func (s *session) replace(path, old, replacement string, all bool) (int, error) {
	b, err := s.readFile(path)
	if err != nil {
		return 0, err
	}
	text := string(b)
	n := strings.Count(text, old)
	switch {
	case n == 0:
		return 0, fmt.Errorf("old_string does not occur in %s; read the part again", path)
	case n > 1 && !all:
		return 0, fmt.Errorf("old_string occurs %d times in %s; give more of its surroundings, or set replace_all", n, path)
	}
	f, err := s.root.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return 0, err
	}
	_, err = f.WriteString(strings.ReplaceAll(text, old, replacement))
	return n, errors.Join(err, f.Close())
}

// textContent returns the content of a tool call that consists of text.
func textContent(text string) []any {
	return []any{object{"type": "content", "content": acp.Text(text)}}
}
