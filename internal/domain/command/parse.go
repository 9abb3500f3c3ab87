package command

import (
	"regexp"
	"slices"
	"strings"
)

var (
	inlineCode = regexp.MustCompile("(?s)(`+)(.+?)`+")
	hidden     = regexp.MustCompile(`(?s)<!--.*?(-->|$)`)
	codeTag    = regexp.MustCompile(`(?is)<(pre|code|blockquote)[\s>].*?(</(pre|code|blockquote)\s*>|$)`)
	fence      = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})")
)

// Parse finds the first command of a comment, which is in Markdown: a line that begins
// with @ and one of the names, in any case, and has a verb as its next word. Code, quotes
// and comments in HTML hold no command.
func Parse(body string, names []string) (verb string, ok bool) {
	text := hidden.ReplaceAllString(strings.ReplaceAll(body, "\r\n", "\n"), "")
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
// the end of the text. Fences of quotes and lists are left: their lines begin with marks.
func unfenced(text string) string {
	var out []string
	open := ""
	for line := range strings.SplitSeq(text, "\n") {
		mark := fence.FindStringSubmatch(line)
		switch {
		case open == "" && mark != nil:
			open = mark[1]
		case open == "":
			out = append(out, line)
		case mark != nil && mark[1][0] == open[0] && len(mark[1]) >= len(open) && strings.TrimSpace(line) == mark[1]:
			open = ""
		}
	}
	return strings.Join(out, "\n")
}
