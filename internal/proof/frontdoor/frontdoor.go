// Package frontdoor tests CONTRIBUTING: its test does what the page says, block by
// block, like a newcomer, and runs the commands that the page names.
package frontdoor

import (
	"fmt"
	"strings"
)

// block is a fenced block of the page.
type block struct {
	line int      // line of the fence
	info []string // words of the fence
	text string   // without the indentation of the fence
}

// blocks finds the fenced blocks under a heading of the page.
func blocks(page, heading string) (out []block, err error) {
	inside, indent := false, ""
	var open *block
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		fence, isFence := strings.CutPrefix(trimmed, "```")
		switch {
		case open == nil && strings.HasPrefix(line, "## "):
			inside = line == "## "+heading
		case !inside:
		case open != nil && isFence:
			out = append(out, *open)
			open = nil
		case isFence:
			indent = line[:len(line)-len(trimmed)]
			open = &block{line: i + 1, info: strings.Fields(fence)}
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("the block in line %d does not end", open.line)
	}
	if out == nil {
		return nil, fmt.Errorf("there is no block under %q", heading)
	}
	return out, nil
}

// put inserts a block into the text of its file: at the end, or, if the block says
// Ops, at the end of the list that Ops returns.
func (b block) put(text string) (string, error) {
	if len(b.info) < 3 {
		return strings.TrimRight(text, "\n") + "\n" + map[bool]string{true: "\n"}[b.info[0] != "text"] + b.text, nil
	}
	const list, end = "Ops() []op.Op {", "\n\t}\n}\n"
	at := strings.Index(text, list)
	if b.info[2] != "Ops" || at < 0 {
		return "", fmt.Errorf("line %d: the block belongs at %q, which is not there", b.line, b.info[2])
	}
	close := strings.Index(text[at:], end)
	if close < 0 {
		return "", fmt.Errorf("line %d: the list of Ops does not end", b.line)
	}
	at += close + 1
	return text[:at] + b.text + text[at:], nil
}
