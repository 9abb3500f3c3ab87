package web

import (
	"encoding/json"
	"fmt"
	"strings"

	"yardmaster/docs"
	"yardmaster/internal/api/op"
	"yardmaster/internal/lazy"
)

// manualName is the file that lists the documents.
const manualName = "manual.json"

// manual is the list of documents that the dashboard shows.
type manual struct {
	Parts []manualPart `json:"parts"`
}

type manualPart struct {
	Name string       `json:"name"`
	Docs []manualPage `json:"docs"`
}

type manualPage struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	About    string    `json:"about"` // its first sentence, in Markdown
	Path     string    `json:"path"`  // of its Markdown
	Headings []heading `json:"headings"`
}

type heading struct {
	Level int    `json:"level"` // 2 to 6
	Text  string `json:"text"`  // in Markdown
}

var (
	headline = lazy.New(`^(#{1,6}) +(.*?) *#*$`)
	sentence = lazy.New(`^.*?[.:](?: |$)`)
)

// addManual adds the documents to the files of the dashboard, and their list.
func addManual(files map[string]*op.Asset) error {
	var m manual
	for _, p := range docs.Parts {
		part := manualPart{Name: p.Name}
		for _, name := range p.Docs {
			text, err := docs.Text(name)
			if err != nil {
				return err
			}
			page := outline(text)
			page.Name = name
			file := hashed(name, ".md", []byte(text))
			files[file] = &op.Asset{ContentType: "text/plain; charset=utf-8", Cache: forever, Body: []byte(text)}
			page.Path = folder + file
			part.Docs = append(part.Docs, page)
		}
		m.Parts = append(m.Parts, part)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("%s: %w", manualName, err)
	}
	files[manualName] = &op.Asset{ContentType: "application/json", Cache: "no-cache", Body: text}
	return nil
}

// outline returns the title, the first sentence and the headings of a Markdown text.
func outline(text string) (p manualPage) {
	p.Headings = []heading{}
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if mark := strings.TrimLeft(line, " "); strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~") {
			switch mark = mark[:3]; fence {
			case "":
				fence = mark
			case mark:
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		m := headline.FindStringSubmatch(line)
		switch {
		case m != nil && p.Title == "":
			p.Title = m[2]
		case m != nil:
			p.Headings = append(p.Headings, heading{len(m[1]), m[2]})
		case p.About == "" && line != "":
			p.About = line
			if first := sentence.FindString(line); first != "" {
				p.About = strings.TrimRight(first, " :")
			}
		}
	}
	return p
}
