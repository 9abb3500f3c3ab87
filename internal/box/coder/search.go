package coder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	maxMatches    = 200
	maxSearchFile = 1 << 20
)

// skippedDirs lists directories without files that a person wrote.
var skippedDirs = map[string]bool{".git": true, ".hg": true, ".svn": true, "node_modules": true, "__pycache__": true, ".venv": true}

func parseSearch(s *session, raw json.RawMessage) (action, error) {
	var args struct{ Pattern, Path, Glob string }
	if err := decodeArgs(raw, &args); err != nil {
		return action{}, err
	}
	re, err := regexp.Compile(args.Pattern)
	if err != nil {
		return action{}, err
	}
	if _, err := filepath.Match(args.Glob, ""); err != nil {
		return action{}, fmt.Errorf("glob %q: %w", args.Glob, err)
	}
	if args.Path == "" {
		args.Path = "."
	}
	path, err := s.local(args.Path)
	if err != nil {
		return action{}, err
	}
	return action{title: fmt.Sprintf("Search %q in %s", args.Pattern, path), do: func(ctx context.Context) (output, error) {
		return s.search(ctx, re, path, args.Glob)
	}}, nil
}

// search searches the files below path. It follows no links.
func (s *session) search(ctx context.Context, re *regexp.Regexp, path, glob string) (output, error) {
	var out strings.Builder
	matches := 0
	err := fs.WalkDir(s.root.FS(), filepath.ToSlash(path), func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == filepath.ToSlash(path):
			return err
		case err != nil: // an unreadable directory does not end the search
			return nil
		case d.IsDir() && skippedDirs[d.Name()] && name != path:
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		if ok, _ := filepath.Match(glob, d.Name()); glob != "" && !ok {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > maxSearchFile {
			return nil
		}
		b, err := s.readFile(name)
		if err != nil || bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 {
			return nil
		}
		line := 0
		for text := range bytes.Lines(b) {
			line++
			text = bytes.TrimRight(text, "\r\n")
			if !re.Match(text) {
				continue
			}
			if matches == maxMatches || out.Len() > maxText {
				out.WriteString("[more matches follow; narrow the search]\n")
				return fs.SkipAll
			}
			matches++
			fmt.Fprintf(&out, "%s:%d: %s\n", name, line, clip(string(bytes.ToValidUTF8(text, []byte("?")))))
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.SkipAll) {
		return output{}, err
	}
	if matches == 0 {
		return output{text: "no match"}, nil
	}
	return output{text: out.String()}, nil
}
