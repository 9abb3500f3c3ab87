// Package gitmodules reads the file .gitmodules, and says which repository an address in it
// means. What it reads was written by whoever wrote the repository: nothing in it is followed
// but by a key that is looked for among repositories that are known.
//
// A key is the host and the path of a repository, such as github.com/acme/lib, without a
// scheme, a user or the ending ".git".
package gitmodules

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// Limits of what is read.
const (
	Name     = ".gitmodules"
	MaxBytes = 64 << 10 // of the file; a larger one has no submodules
	Most     = 64       // submodules of a checkout, with those of submodules
	Deepest  = 4        // submodules of submodules of …
)

// Module is one submodule.
type Module struct {
	Name string // as the file calls it
	Path string // of its folder
	URL  string
}

// Parse lists the submodules of a file, in its order, which have a path and an address. Of a
// file that is not well-formed it reads what is. A path leads out of no checkout and into no
// .git folder.
func Parse(text []byte) (all []Module) {
	if len(text) > MaxBytes {
		return nil
	}
	at := -1
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		line = strings.TrimSpace(line)
		if section, ok := strings.CutPrefix(line, "["); ok {
			section, _, _ = strings.Cut(section, "]")
			kind, name, _ := strings.Cut(section, " ")
			at = -1
			if name = unquoted(strings.TrimSpace(name)); strings.EqualFold(kind, "submodule") && name != "" {
				if at = slices.IndexFunc(all, func(m Module) bool { return m.Name == name }); at < 0 {
					at, all = len(all), append(all, Module{Name: name})
				}
			}
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || at < 0 || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "path":
			all[at].Path = unquoted(strings.TrimSpace(value))
		case "url":
			all[at].URL = unquoted(strings.TrimSpace(value))
		}
	}
	return slices.DeleteFunc(all, func(m Module) bool { return !ValidPath(m.Path) || m.URL == "" })
}

// ValidPath tells whether a path is that of a folder in a checkout.
func ValidPath(p string) bool {
	if p == "" || p != path.Clean(p) || path.IsAbs(p) || odd(p) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "." || part == ".." || strings.HasPrefix(strings.ToLower(part), ".git") {
			return false
		}
	}
	return true
}

// odd tells whether a text has what no name of ours has.
func odd(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}

// unquoted is a value without its quotes, and without the comment behind it.
func unquoted(v string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(v):
			i++
			b.WriteByte(v[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Key is the key of an absolute address, by http, https or ssh, in whichever form; "" for
// any other, such as a path, git:// or ext::.
func Key(address string) string {
	if odd(address) {
		return ""
	}
	var host, p string
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil || !slices.Contains([]string{"https", "http", "ssh", "git+ssh", "ssh+git"}, u.Scheme) || u.RawQuery != "" {
			return ""
		}
		if host, p = u.Host, u.Path; strings.Contains(u.Scheme, "ssh") {
			host = u.Hostname()
		}
	} else {
		var ok bool
		if host, p, ok = strings.Cut(address, ":"); !ok || strings.ContainsAny(host, "/[") || strings.HasPrefix(p, ":") {
			return ""
		}
		if _, after, user := strings.Cut(host, "@"); user {
			host = after
		}
	}
	p = trimmed(p)
	if host == "" || strings.HasPrefix(host, "-") || p == "" || p != path.Clean(p) || strings.HasPrefix(p, "..") {
		return ""
	}
	return strings.ToLower(host) + "/" + p
}

func trimmed(p string) string {
	return strings.TrimSuffix(strings.Trim(p, "/"), ".git")
}

// Of is the key of an address in the .gitmodules of a repository, which has a key itself. A
// relative address names a repository of the same host, of whichever owner: as many "../" as
// lead out of that name none. It is "" for what can be none.
func Of(super, address string) string {
	if !strings.HasPrefix(address, "./") && !strings.HasPrefix(address, "../") {
		return Key(address)
	}
	parts := strings.Split(super, "/")
	if len(parts) < 3 {
		return ""
	}
	root := strings.Join(parts[:len(parts)-2], "/") // the host, and its path before the owner
	// Joined to a rooted path, "../" above the root would be left out.
	joined := path.Join(parts[len(parts)-2], parts[len(parts)-1], trimmed(address))
	if odd(address) || strings.HasPrefix(joined, "..") || strings.Count(joined, "/") != 1 {
		return ""
	}
	return root + "/" + joined
}
