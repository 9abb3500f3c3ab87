package scripted

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// call is one call of a tool: with args, or with text for a freeform tool.
type call struct {
	tool tool
	args map[string]any
	text string
}

// Names that agents give to their tools and to the arguments.
var (
	writeTools  = []string{"write", "Write", "write_file", "create_file", "WriteFile"}
	editTools   = []string{"edit", "Edit", "edit_file", "replace", "str_replace"}
	shellTools  = []string{"shell", "bash", "Bash", "run_shell_command", "shell_command", "exec_command", "local_shell", "run_terminal_cmd"}
	readTools   = []string{"read", "Read", "read_file", "view"}
	searchTools = []string{"search", "grep", "Grep", "grep_search", "search_file_content"}

	pathArgs    = []string{"path", "file_path", "filePath", "absolute_path", "filename", "target_file"}
	contentArgs = []string{"content", "contents", "file_text", "text"}
	oldArgs     = []string{"old_string", "oldString", "old_str", "oldText", "before"}
	newArgs     = []string{"new_string", "newString", "new_str", "newText", "after"}
	shellArgs   = []string{"command", "cmd", "script"}
	patternArgs = []string{"pattern", "query", "regex"}
)

// value is an argument, with the names under which tools may take it.
type value struct {
	names []string
	value any
	path  bool
}

// plan makes a step into a call of a tool that the agent offers; nil for a step
// that is only text. It fails when no offered tool can do the step.
func (t *turn) plan(st step) (*call, error) {
	switch {
	case st.Write != nil:
		return t.write(*st.Write)
	case st.Edit != nil:
		return t.edit(*st.Edit)
	case st.Shell != "":
		return t.shell(st.Shell)
	case st.Read != "":
		if c := t.offer(readTools, value{pathArgs, st.Read, true}); c != nil {
			return c, nil
		}
		return t.shell("cat " + quote(st.Read))
	case st.Search != "":
		if c := t.offer(searchTools, value{patternArgs, st.Search, false}); c != nil {
			return c, nil
		}
		return t.shell("grep -rn -e " + quote(st.Search) + " .")
	case st.Tool != nil:
		f, ok := t.find([]string{st.Tool.Name})
		if !ok {
			return nil, t.cannot("call " + st.Tool.Name)
		}
		args := maps.Clone(st.Tool.Args)
		if args == nil {
			args = map[string]any{}
		}
		f.schema.complete(args)
		return &call{tool: f, args: args}, nil
	}
	return nil, nil
}

func (t *turn) write(w writeStep) (*call, error) {
	if c := t.offer(writeTools, value{pathArgs, w.Path, true}, value{contentArgs, w.Content, false}); c != nil {
		return c, nil
	}
	if c := t.offer([]string{"edit"}, value{pathArgs, w.Path, true}, value{oldArgs, "", false},
		value{newArgs, w.Content, false}); c != nil {
		return c, nil
	}
	lines := prefixed("+", w.Content)
	if c := t.patch("*** Add File: " + w.Path + "\n" + lines); c != nil {
		return c, nil
	}
	end := "END_OF_FILE"
	for strings.Contains(w.Content, end) {
		end += "_"
	}
	text := w.Content
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return t.shell("mkdir -p " + quote(path.Dir(w.Path)) + " && cat > " + quote(w.Path) + " <<'" + end + "'\n" + text + end)
}

func (t *turn) edit(e editStep) (*call, error) {
	if c := t.offer(editTools, value{pathArgs, e.Path, true}, value{oldArgs, e.Old, false}, value{newArgs, e.New, false}); c != nil {
		return c, nil
	}
	if c := t.patch("*** Update File: " + e.Path + "\n@@\n" + prefixed("-", e.Old) + prefixed("+", e.New)); c != nil {
		return c, nil
	}
	file := quote(e.Path)
	return t.shell("old=" + quote(e.Old) + " new=" + quote(e.New) + " awk " + quote(replaceOnce) + " " + file +
		" > " + file + ".new && cat " + file + ".new > " + file + " && rm " + file + ".new")
}

// replaceOnce is an awk program that reads a whole file as one record and replaces
// the first $old by $new; it fails where there is no $old.
const replaceOnce = `BEGIN { RS = "\001"; ORS = ""; old = ENVIRON["old"] }
(at = index($0, old)) { print substr($0, 1, at - 1) ENVIRON["new"] substr($0, at + length(old)); done = 1 }
END { exit !done }`

func (t *turn) shell(command string) (*call, error) {
	f, ok := t.find(shellTools)
	if !ok {
		return nil, t.cannot("run a command")
	}
	args := map[string]any{}
	for _, name := range shellArgs {
		p, ok := f.schema.Properties[name]
		if !ok {
			continue
		}
		if args[name] = command; p.is("array") {
			args[name] = []string{"bash", "-lc", command}
		}
		break
	}
	f.schema.complete(args)
	return &call{tool: f, args: args}, nil
}

// patch calls the apply_patch tool of codex, or answers nil without that tool.
func (t *turn) patch(change string) *call {
	f, ok := t.find([]string{"apply_patch"})
	if !ok {
		return nil
	}
	text := "*** Begin Patch\n" + change + "*** End Patch\n"
	if f.freeform {
		return &call{tool: f, text: text}
	}
	return &call{tool: f, args: map[string]any{"input": text}}
}

// find is the first tool with one of the names, bare or after a server's name
// (developer__shell).
func (t *turn) find(names []string) (tool, bool) {
	for _, name := range names {
		for _, f := range t.tools {
			if f.name == name || strings.HasSuffix(f.name, "__"+name) {
				return f, true
			}
		}
	}
	return tool{}, false
}

// offer calls the first tool that has one of the names and takes all values; nil
// if there is none.
func (t *turn) offer(names []string, values ...value) *call {
	for _, name := range names {
		f, ok := t.find([]string{name})
		if !ok {
			continue
		}
		args := map[string]any{}
		for _, v := range values {
			i := slices.IndexFunc(v.names, func(n string) bool { _, ok := f.schema.Properties[n]; return ok })
			if i < 0 {
				break
			}
			arg := v.names[i]
			args[arg] = v.value
			if v.path {
				args[arg] = t.place(arg, f.schema.Properties[arg], fmt.Sprint(v.value))
			}
		}
		if len(args) < len(values) {
			continue
		}
		f.schema.complete(args)
		return &call{tool: f, args: args}
	}
	return nil
}

// place makes a path absolute where the tool's argument demands that.
func (t *turn) place(arg string, p property, name string) string {
	wants := strings.Contains(arg, "absolute") || strings.Contains(strings.ToLower(p.Description), "absolute")
	if !wants || path.IsAbs(name) {
		return name
	}
	return path.Join(t.cwd(), name)
}

// complete gives every missing required argument a value of its type.
func (s schema) complete(args map[string]any) {
	for _, name := range s.Required {
		if _, ok := args[name]; ok {
			continue
		}
		p := s.Properties[name]
		switch {
		case len(p.Enum) > 0:
			args[name] = p.Enum[0]
		case p.is("boolean"):
			args[name] = false
		case p.is("number"), p.is("integer"):
			args[name] = 60000
		case p.is("array"):
			args[name] = []any{}
		case p.is("object"):
			args[name] = map[string]any{}
		default:
			args[name] = "scripted"
		}
	}
}

func (t *turn) cannot(do string) error {
	names := make([]string, len(t.tools))
	for i, f := range t.tools {
		names[i] = f.name
	}
	return fmt.Errorf("the scripted model wants to %s, but the agent offers no tool for it (%s)", do, strings.Join(names, ", "))
}

// prefixed puts a prefix before every line, and ends the last line.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
