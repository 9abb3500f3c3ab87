package stencil

import (
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"text/template/parse"
)

// where is what the text before something says of it.
type where int

const (
	inText  where = iota // between tags
	inTag                // between attributes
	inValue              // of an attribute, between quotes
	inRaw                // in a script, or a style
	inComment
)

// place is where in a page something is printed.
type place struct {
	where where
	tag   string // inTag, inValue and inRaw: of which element
	quote byte   // inValue: the quotes
	name  string // inValue: of which attribute
	begun bool   // inValue: there is something before it
	query bool   // inValue: there is a question mark before it
}

// addresses are the attributes that hold one address.
var addresses = map[string]bool{"href": true, "src": true, "action": true, "formaction": true}

// forbidden tells whether nothing may be printed at the attribute: others than addresses and
// names, values and texts mean something to a browser.
func (p place) forbidden() bool {
	return p.name == "style" || strings.HasPrefix(p.name, "on") || p.name == "srcset" || p.name == "srcdoc" || p.name == "content"
}

// escape makes a text safe to print at the place; safe: it is HTML, or an address, of ours.
func (p place) escape(text string, safe bool) string {
	switch {
	case p.where == inText && safe:
		return text
	case p.where == inValue && addresses[p.name] && !p.begun:
		if !safe && !harmless(text) {
			text = "#" // leads nowhere
		}
	case p.where == inValue && addresses[p.name] && p.query:
		text = strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	case p.where == inValue && addresses[p.name]:
		text = url.PathEscape(text)
	}
	return template.HTMLEscapeString(text)
}

// harmless tells whether an address leads somewhere, and runs nothing.
func harmless(address string) bool {
	scheme, _, has := strings.Cut(address, ":")
	if !has || strings.ContainsAny(scheme, "/?#") {
		return true
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return true
	}
	return false
}

// look finds the places of all that a template prints.
func (t *Template) look(tree *parse.Tree) error {
	if tree.Root == nil {
		return nil
	}
	end, err := t.listed(place{}, tree.Root)
	if err == nil && end != (place{}) {
		err = fmt.Errorf("stencil: %s ends within a tag", tree.Name)
	}
	return err
}

func (t *Template) listed(p place, l *parse.ListNode) (place, error) {
	if l == nil {
		return p, nil
	}
	for _, n := range l.Nodes {
		var err error
		if p, err = t.placed(p, n); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (t *Template) placed(p place, n parse.Node) (place, error) {
	switch n := n.(type) {
	case *parse.TextNode:
		return p.after(string(n.Text)), nil
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 {
			return p, nil
		}
		if p.where != inText && p.where != inValue || p.where == inValue && p.forbidden() {
			return p, fmt.Errorf("stencil: %s stands where nothing can be printed", n)
		}
		t.places[n] = p
		p.begun = p.begun || p.where == inValue
		return p, nil
	case *parse.IfNode:
		return t.both(p, &n.BranchNode, p)
	case *parse.WithNode:
		return t.both(p, &n.BranchNode, p)
	case *parse.RangeNode:
		return t.both(p, &n.BranchNode, p)
	case *parse.TemplateNode:
		if p.where != inText {
			return p, fmt.Errorf("stencil: %s stands within a tag", n)
		}
	}
	return p, nil
}

// both follows the two ways of a branch, which end alike.
func (t *Template) both(p place, n *parse.BranchNode, without place) (place, error) {
	a, err := t.listed(p, n.List)
	if err != nil {
		return p, err
	}
	b, err := t.listed(without, n.ElseList)
	if err == nil && (a.where != b.where || a.tag != b.tag || a.quote != b.quote || a.name != b.name) {
		err = fmt.Errorf("stencil: the two ways of %s end in other places", n)
	}
	a.begun, a.query = a.begun || b.begun, a.query || b.query
	return a, err
}

// after is the place after a text of the template.
func (p place) after(text string) place {
	for text != "" {
		switch p.where {
		case inText:
			_, rest, found := strings.Cut(text, "<")
			if text = rest; !found {
				return p
			}
			if after, is := strings.CutPrefix(text, "!--"); is {
				p, text = place{where: inComment}, after
				continue
			}
			n := strings.IndexAny(text, " \t\r\n>")
			if n < 0 {
				n = len(text)
			}
			p, text = place{where: inTag, tag: strings.ToLower(text[:n])}, text[n:]
		case inTag:
			p, text = p.tagged(text)
		case inValue:
			value, rest, found := strings.Cut(text, string(p.quote))
			if text = rest; !found {
				p.begun, p.query = true, p.query || strings.Contains(value, "?")
				return p
			}
			p = place{where: inTag, tag: p.tag}
		case inRaw:
			n := strings.Index(strings.ToLower(text), "</"+p.tag)
			if n < 0 {
				return p
			}
			p, text = place{}, text[n:]
		case inComment:
			_, rest, found := strings.Cut(text, "-->")
			if text = rest; found {
				p = place{}
			}
		}
	}
	return p
}

// tagged goes to the next value, or the end of the tag.
func (p place) tagged(text string) (place, string) {
	n := strings.IndexAny(text, `"'>`)
	switch {
	case n < 0:
		return p, ""
	case text[n] == '>' && (p.tag == "script" || p.tag == "style"):
		return place{where: inRaw, tag: p.tag}, text[n+1:]
	case text[n] == '>':
		return place{}, text[n+1:]
	}
	words := strings.Fields(strings.TrimRight(text[:n], "= \t\r\n"))
	name := ""
	if len(words) > 0 {
		name = strings.ToLower(words[len(words)-1])
	}
	return place{where: inValue, tag: p.tag, quote: text[n], name: name}, text[n+1:]
}
