package citation

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a.go:1": "a.go:1", "a.go:1-1": "a.go:1", "a/b c.go:2-30": "a/b c.go:2-30", "a:b:3": "a:b:3",
		"": "", "a.go": "", "a.go:": "", ":1": "", "a.go:0": "", "a.go:3-2": "", "a.go:1-": "", "a.go:-1": "", "/a.go:1": "",
		"../a.go:1": "", "a/../../b:1": "", "a//b:1": "", "./a:1": "", "a\nb:1": "", "a\x00:1": "", ".:1": "",
		strings.Repeat("a", 2000) + ":1": "",
	} {
		p, ok := Parse(text)
		if ok != (want != "") || ok && p.String() != want {
			t.Errorf("%.40q: %v, %v", text, p, ok)
		}
	}
}

// What a sentence says, and what keeps the lines from bearing it out.
func TestCheck(t *testing.T) {
	t.Parallel()
	folder := "// Folder keeps objects as files. It answers 404 after 10 seconds,\n// or when the CPU is busy.\n" +
		"type Folder struct {\n\tbase string // made by NewFolder\n}\n"
	set := "timeout:\n  connect: 30s\nretries: 3\n"
	use := "f := NewFolder(base)\nif f == nil {\n\treturn http.StatusForbidden\n}\n"
	flags := "port = flag.Int(\"port\", 8080, \"where to listen\")\nparser.add_argument('--dry-run')\nhome := os.Getenv(\"FERRY_HOME\")\n"
	for _, c := range []struct {
		says, path, lines string
		want              Fault
	}{
		{"`Folder` keeps objects as files.", "a.go", folder, ""},
		{"`Folder` \"keeps objects as files\".", "a.go", folder, ""},
		{"`Folder` “keeps objects as files. It answers 404 after 10 seconds, or when the CPU”.", "a.go", folder, ""},
		{"`Folder` keeps \"objects in files\".", "a.go", folder, Quote},
		{"`Folder` answers after 10 seconds.", "a.go", folder, ""},
		{"`Folder` answers after 10 minutes.", "a.go", folder, Unit},
		{"`Folder` answers after 12 seconds.", "a.go", folder, Number},
		{"`Folder` answers when the GPU is busy.", "a.go", folder, Abbreviation},
		{"`Store` keeps objects as files.", "a.go", folder, Name},
		{"`NewFolder` made the base.", "a.go", folder, Definition},
		{"`Fold` keeps objects as files.", "a.go", folder, Name},
		{"`Folder` keeps objects, see https://example.com/a.", "a.go", folder, Link},
		{"`Folder` keeps objects, see www.example.com.", "a.go", folder, Link},
		{"`Folder` is eaten by goats every morning.", "a.go", folder, Words},
		{"The weather.", "a.go", folder, Words},
		{"It is so.", "a.go", folder, Words},
		{"`a.go` keeps objects as files.", "x/a.go", folder, ""},
		{"`x/a.go` keeps objects as files.", "x/a.go", folder, ""},
		{"`connect` is 30 seconds.", "a.yml", set, ""},
		{"`timeout.connect` is 30 seconds.", "a.yml", set, ""},
		{"`retries` is 3.", "a.yml", set, ""},
		{"`retries` is 4.", "a.yml", set, Number},
		{"`NewFolder` takes the base.", "b.go", use, Definition},
		{"`Server.NewFolder` takes the base.", "b.go", use, Name},
		{"The return is 403.", "b.go", use, ""},
		{"The return is 404.", "b.go", use, Number},
		{"`--port` is 8080 and says where to listen.", "c.go", flags, ""},
		{"`dry-run` is a parser argument.", "c.py", flags, ""},
		{"`FERRY_HOME` is the home.", "c.go", flags, ""},
		{"FERRY_HOME is the home.", "c.go", flags, ""},
		{"FERRY_BASE is the home.", "c.go", flags, Name},
		{"The home is read by addArgument.", "c.go", flags, Name},
	} {
		at, _ := Parse(c.path + ":1")
		if got := Check(c.says, at, strings.Split(strings.TrimSuffix(c.lines, "\n"), "\n")); got != c.want {
			t.Errorf("%s: %q, want %q", c.says, got, c.want)
		}
	}
}

// Lines that introduce a name, and lines that use it.
func TestIntroducer(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"func name(", "func (s *Service) name() error {", "\tname string // a field", "const name = 1", "var name int",
		"\tname = 1", "name := 2",
		"name: 3", `"name": 3,`, "- name: x", "export NAME=1", "NAME ?= 1", "def name(self):", "    async name() {", "name() {", "name()",
		"class name extends Base {", "pub fn name(&self) -> i32 {", "public static int name(int a) {", "#define name 1",
		`flag.Int("name", 1, "")`, "Port int `yaml:\"name\"`", `parser.add_argument("--name")`, `os.Getenv("NAME")`, "| `name` | 3 |",
		"## name", "- `name`: what it is", "  name,", "type name struct {", "CREATE TABLE name (", "name => 1,"[:4],
	} {
		name := "name"
		if strings.Contains(line, "NAME") {
			name = "NAME"
		}
		if !Introducer(name)(line) {
			t.Errorf("%q introduces nothing", line)
		}
	}
	for _, line := range []string{
		"x := name(1)", "return name", "if name == 1 {", "if name(x) {", "\tfoo(name, 1)", "// see name", "call(a.name)", "renamed := 1",
		"names: 3", "\tname(1, 2);", "for _, x := range name {", "while name(x) {", "go name()",
	} {
		if Introducer("name")(line) {
			t.Errorf("%q introduces it", line)
		}
	}
}
