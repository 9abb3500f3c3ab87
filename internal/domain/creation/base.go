package creation

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// baseName and baseVersion name the files that a repository begins with. The version
// goes up with each change of one of them.
const (
	baseName    = "plain"
	baseVersion = 1
)

//go:embed base
var baseFiles embed.FS

// baseFile is a file of the base. Its source has no leading dot, so that it means
// nothing to git and to tools here.
type baseFile struct {
	path, source string
	program      bool
}

var base = []baseFile{
	{path: ".editorconfig", source: "editorconfig"},
	{path: ".gitattributes", source: "gitattributes"},
	{path: ".gitignore", source: "gitignore"},
	{path: ".mcp.json", source: "mcp.json"},
	{path: ".svc/base.yml", source: "base.yml"},
	{path: ".svc/policy.yml", source: "policy.yml"},
	{path: "AGENTS.md", source: "agents.md"},
	{path: "README.md", source: "readme.md"},
	{path: "scripts/check", source: "check.sh", program: true},
}

// Artifact is a file of a new repository.
type Artifact struct {
	_          struct{} `doc:"A file that a new repository begins with." schema:"RepoArtifact"`
	Path       string   `json:"path" example:".svc/policy.yml" doc:"where it is"`
	SHA256     string   `json:"sha256" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"of its content, in hexadecimal digits"`
	Executable bool     `json:"executable" doc:"whether it is a program"`
}

// Manifest says what a new repository begins with.
type Manifest struct {
	_         struct{}   `doc:"What a new repository begins with." schema:"RepoManifest"`
	Template  string     `json:"template" example:"plain" doc:"name of the set of files"`
	Version   int64      `json:"version" doc:"of the set; a later one may have other files"`
	CommitSHA *string    `json:"commit_sha" example:"7fd1a60b01f91b314f59955a4e4d4e80d8edf11d" doc:"the commit that has them; null: somebody else pushed first, and none was made"`
	Artifacts []Artifact `json:"artifacts" doc:"the files, by path; empty without a commit"`
}

// render makes the files of a repository with a name and a description.
func render(name, description string) (files map[string][]byte, programs []string, err error) {
	if description != "" {
		description = "\n" + description + "\n"
	}
	fill := strings.NewReplacer("{{name}}", name, "{{description}}", description, "{{version}}", strconv.Itoa(baseVersion))
	files = map[string][]byte{}
	for _, f := range base {
		text, err := baseFiles.ReadFile("base/" + f.source)
		if err != nil {
			return nil, nil, fmt.Errorf("read a file of the base: %w", err)
		}
		files[f.path] = []byte(fill.Replace(string(text)))
		if f.program {
			programs = append(programs, f.path)
		}
	}
	return files, programs, nil
}

// manifest tells of the files of a repository whose first commit was made by us, or of
// none for "".
func manifest(c row) (Manifest, error) {
	out := Manifest{Template: baseName, Version: c.Base, Artifacts: []Artifact{}}
	if c.CommitSHA == "" {
		return out, nil
	}
	out.CommitSHA = &c.CommitSHA
	files, _, err := render(c.Name, c.Description)
	for _, f := range base {
		sum := sha256.Sum256(files[f.path])
		out.Artifacts = append(out.Artifacts, Artifact{Path: f.path, SHA256: hex.EncodeToString(sum[:]), Executable: f.program})
	}
	return out, err
}
