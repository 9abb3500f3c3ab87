// Sbom prints the components of a program that Go built, as a bill of materials in
// JSON: CycloneDX 1.6 (ECMA-424). It reads them from the program itself, so the bill
// has what was linked and not what go.mod allows. The same program always gives the
// same bytes: the bill has no time and no serial number.
//
//	go run ./internal/proof/sbom ./yardmaster >sbom.json
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// bill has the parts of CycloneDX that this program uses.
type bill struct {
	Schema       string       `json:"$schema"`
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Scope      string     `json:"scope,omitempty"`
	Hashes     []digest   `json:"hashes,omitempty"`
	Licences   []choice   `json:"licenses,omitempty"`
	Package    string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type digest struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

func main() {
	into := flag.String("licences", "", "file for the texts of the licences")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: sbom [-licences FILE] PROGRAM")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *into, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program, licences string, to io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	f, err := os.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	b := of(info, filepath.Base(program))
	b.Metadata.Component.Hashes = []digest{{"SHA-256", hex.EncodeToString(sum.Sum(nil))}}
	all, err := licencesOf(b.Components)
	if err != nil {
		return err
	}
	for i, c := range b.Components {
		b.Components[i].Licences = all[c.Name].choices()
	}
	if licences != "" {
		var texts bytes.Buffer
		if err := write(&texts, b.Components, all); err != nil {
			return err
		}
		if err := os.WriteFile(licences, texts.Bytes(), 0o644); err != nil {
			return err
		}
	}
	enc := json.NewEncoder(to)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(b)
}

// of makes the bill of a program with that name: the linked modules, with
// replacements in place of the modules that they replace, and Go's own library.
func of(info *debug.BuildInfo, name string) bill {
	app := component{Ref: "program", Type: "application", Name: name, Properties: []property{
		{"go:module", info.Main.Path}, {"go:package", info.Path},
	}}
	for _, s := range info.Settings {
		app.Properties = append(app.Properties, property{"go:build:" + s.Key, s.Value})
	}
	parts := []component{module("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, module(m.Path, m.Version, m.Sum))
	}
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = p.Ref
	}
	slices.Sort(all)
	return bill{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", Format: "CycloneDX", Spec: "1.6", Version: 1,
		Metadata: metadata{app}, Components: parts,
		Dependencies: []dependency{{app.Ref, all}}, // a program does not tell which module needs which
	}
}

// module returns the component of a library. Its purl follows
// https://github.com/package-url/purl-spec; its hash is that of go.sum.
func module(path, version, sum string) component {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	purl := "pkg:golang/" + strings.Join(elements, "/")
	if version != "" {
		purl += "@" + strings.ReplaceAll(url.PathEscape(version), "+", "%2B")
	}
	c := component{Ref: purl, Type: "library", Name: path, Version: version, Scope: "required", Package: purl + "?type=module"}
	if coded, ok := strings.CutPrefix(sum, "h1:"); ok {
		if b, err := base64.StdEncoding.DecodeString(coded); err == nil {
			c.Hashes = []digest{{"SHA-256", hex.EncodeToString(b)}}
		}
	}
	return c
}
