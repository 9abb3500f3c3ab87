package command

import (
	"slices"
	"strings"

	"yardmaster/internal/lazy"
)

var (
	inlineCode = lazy.New("(?s)(`+)(.+?)`+")
	hidden     = lazy.New(`(?s)<!--.*?(-->|$)`)
	codeTag    = lazy.New(`(?is)<(pre|code|blockquote)[\s>].*?(</(pre|code|blockquote)\s*>|$)`)
	fence      = lazy.New("^( {0,3}|(?: *(?:[-+*]|[0-9]{1,9}[.)]) +)+)(`{3,}[^`]*$|~{3,})")
)

// Parse finds the first command of a comment, which is in Markdown: a line that begins
// with @ and one of the names, in any case, and has a verb as its next word. Code, quotes
// and comments in HTML hold no command.
func Parse(body string, names []string) (verb string, ok bool) {
	text := strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	text = hidden.ReplaceAllString(text, " <!> ") // a word, so that nothing before and behind it becomes a fence or a line
	text = codeTag.ReplaceAllString(unfenced(text), " ")
	text = inlineCode.ReplaceAllString(text, " code ")
	quoted := false
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimLeft(line, " "), "\t")
		switch bare := strings.TrimSpace(line); {
		case bare == "":
			quoted = false
			continue
		case strings.HasPrefix(bare, ">"):
			quoted = true // a paragraph that goes on without its mark is quoted, too
			continue
		case quoted, indented:
			continue
		}
		words := strings.Fields(line)
		name, called := strings.CutPrefix(words[0], "@")
		if !called || len(words) < 2 || !slices.ContainsFunc(names, func(n string) bool {
			return n != "" && strings.EqualFold(strings.TrimRight(name, ":,"), n)
		}) {
			continue
		}
		said := strings.ToLower(strings.TrimRight(words[1], ".,;:!?"))
		if slices.Contains([]string{Review, Rebase, Fix, Stop, Explain}, said) {
			return said, true
		}
	}
	return "", false
}

// unfenced removes the blocks of code between fences. A fence without an end reaches to
// the end of the text, or of the item of a list that it is in. Fences of quotes are left:
// their lines begin with marks. See CommonMark 0.31, section 4.5.
func unfenced(text string) string {
	var out []string
	open, item := "", 0 // the mark of the fence, and the column of the text of its item
	for line := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if bare != "" && indent < item {
			open, item = "", 0
		}
		begins := fence.FindStringSubmatch(line)
		switch {
		case open == "" && begins != nil:
			open = begins[2][:len(begins[2])-len(strings.TrimLeft(begins[2], begins[2][:1]))]
			if item = len(begins[1]); strings.TrimSpace(begins[1]) == "" {
				item = 0
			}
		case open == "":
			out = append(out, line)
		case indent <= item+3 && len(bare) >= len(open) && strings.Trim(bare, open[:1]) == "":
			open, item = "", 0
		}
	}
	return strings.Join(out, "\n")
}
