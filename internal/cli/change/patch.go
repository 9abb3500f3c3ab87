package change

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// patch writes the change of a file as git does, byte for byte. It fails for what the
// server does not have as text, of which half a patch would come.
func (d *diff) patch(w io.Writer) error {
	f := d.File
	modes := map[string]string{"file": "100644", "executable": "100755", "link": "120000", "submodule": "160000"}
	mode, was := modes[f.Type], modes[f.Type]
	if f.WasType != nil {
		was = modes[*f.WasType]
	}
	from := f.Path
	if f.Was != nil {
		from = *f.Was
	}
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", gitName("a/", from), gitName("b/", f.Path))
	old, now := gitName("a/", from), gitName("b/", f.Path)
	switch {
	case f.Kind == "added":
		old = "/dev/null"
		fmt.Fprintf(&b, "new file mode %s\n", mode)
	case f.Kind == "deleted":
		now = "/dev/null"
		fmt.Fprintf(&b, "deleted file mode %s\n", mode)
	case mode != was:
		fmt.Fprintf(&b, "old mode %s\nnew mode %s\n", was, mode)
	}
	if f.Was != nil {
		fmt.Fprintf(&b, "rename from %s\nrename to %s\n", gitName("", from), gitName("", f.Path))
	}
	if len(f.Hunks) > 0 {
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", old, now)
	}
	for _, h := range f.Hunks {
		if strings.Contains(h.Section+strings.Join(h.Lines, ""), "\n") {
			return errors.New("the server sends what are no lines")
		}
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		if h.Section != "" {
			b.WriteString(" " + h.Section)
		}
		b.WriteString("\n")
		for _, l := range h.Lines {
			if strings.ContainsRune(l, '\uFFFD') {
				return fmt.Errorf("%s has bytes that are no text: fetch the branch for its change", f.Path)
			}
			b.WriteString(l + "\n")
		}
	}
	switch {
	case f.Binary:
		fmt.Fprintf(&b, "Binary files %s and %s differ\n", old, now)
	case f.Cut:
		return fmt.Errorf("%s changes by more than the server shows: fetch the branch for its change", f.Path)
	case f.Kind == "type_changed" && len(f.Hunks) > 0:
		return fmt.Errorf("%s became a %s: fetch the branch for its change", f.Path, f.Type)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// gitName is a path as git writes it into a patch: quoted where it has bytes that would end
// its line or its quotes. The server quotes a path in another way, which is taken off first.
func gitName(side, path string) string {
	if strings.HasPrefix(path, `"`) {
		if raw, err := strconv.Unquote(path); err == nil {
			path = raw
		}
	}
	special := false
	var b strings.Builder
	for _, c := range []byte(side + path) {
		switch {
		case c == '"' || c == '\\':
			special = true
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			special = true
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if special {
		return `"` + b.String() + `"`
	}
	return side + path
}
