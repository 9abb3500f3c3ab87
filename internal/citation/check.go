package citation

import (
	"path"
	"strings"

	"yardmaster/internal/lazy"
)

// Fault is the rule that a sentence breaks; "" is none.
type Fault string

// The rules. A sentence is held against the lines of one place.
const (
	Quote        Fault = "quote"        // words in quotes stand in the lines as they are
	Name         Fault = "name"         // each name stands there as a whole word
	Definition   Fault = "definition"   // the first name is introduced there
	Abbreviation Fault = "abbreviation" // so does each abbreviation
	Number       Fault = "number"       // and each number
	Unit         Fault = "unit"         // with its unit on the line
	Link         Fault = "link"         // each address stands in the lines
	Words        Fault = "words"        // and half of the other words do
)

var (
	quoted = lazy.New(`"([^"]+)"`)
	code   = lazy.New("`([^`]+)`")
	// looksCode finds what is a name without being marked as one.
	looksCode    = lazy.New(`--[A-Za-z][\w-]+|\b[a-z]+[A-Z]\w*|\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+`)
	identifier   = lazy.New(`^-{0,2}[A-Za-z_$@#][\w.$:-]*(\(\))?$`)
	abbreviation = lazy.New(`\b[A-Z][A-Z0-9]+\b`)
	address      = lazy.New(`(?i)\b(?:[a-z][a-z0-9+.-]*://|www\.)[^\s)>\]"'` + "`" + `]+`)
	fancy        = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`)
)

// Check holds a sentence against the lines of a place, which are those of its file.
func Check(sentence string, at Place, lines []string) Fault {
	sentence = fancy.Replace(sentence)
	raw, joined := strings.Join(lines, "\n"), prose(lines)
	quotes := quoted.FindAllStringSubmatch(sentence, -1)
	for _, m := range quotes {
		if !strings.Contains(joined, flat(m[1])) && !strings.Contains(flat(raw), flat(m[1])) {
			return Quote
		}
	}
	for _, a := range address.FindAllString(sentence, -1) {
		if !strings.Contains(raw, strings.TrimRight(a, ".,;:!?")) {
			return Link
		}
	}
	bare := quoted.ReplaceAllString(sentence, " ")
	names := namesIn(bare)
	if f := checkNames(names, at, raw, joined); f != "" {
		return f
	}
	bare = looksCode.ReplaceAllString(address.ReplaceAllString(code.ReplaceAllString(bare, " "), " "), " ")
	low := strings.ToLower(joined + " " + raw)
	for _, a := range abbreviation.FindAllString(bare, -1) {
		if !strings.Contains(low, strings.ToLower(a)) {
			return Abbreviation
		}
	}
	if f := checkNumbers(bare, lines); f != "" {
		return f
	}
	if len(quotes) > 0 && len(names) > 0 {
		return "" // a value need not have words beside it
	}
	have, want, hits := wordsOf(joined+" "+raw+" "+at.Path), wordsOf(bare), 0
	for _, u := range units {
		delete(want, Stem(u.said)) // checked with its number
	}
	for w := range want {
		if have[w] {
			hits++
		}
	}
	if hits*2 < len(want) || len(want)+len(names)+len(quotes) == 0 {
		return Words
	}
	return ""
}

// namesIn lists what is marked as code or looks like it, in its order.
func namesIn(sentence string) (names []string) {
	for len(sentence) > 0 {
		marked, seems := code.FindStringSubmatchIndex(sentence), looksCode.FindStringIndex(sentence)
		switch {
		case marked != nil && (seems == nil || marked[0] <= seems[0]):
			names = append(names, strings.TrimSpace(sentence[marked[2]:marked[3]]))
			sentence = sentence[marked[1]:]
		case seems != nil:
			names = append(names, sentence[seems[0]:seems[1]])
			sentence = sentence[seems[1]:]
		default:
			return names
		}
	}
	return names
}

// checkNames holds names against lines. A file is introduced by itself, and what is no single
// name, such as an expression, need not be introduced.
func checkNames(names []string, at Place, raw, joined string) Fault {
	first := true
	for _, name := range names {
		if name == at.Path || name == path.Base(at.Path) {
			first = false
			continue
		}
		if !identifier.MatchString(name) {
			if !strings.Contains(joined, flat(name)) && !strings.Contains(flat(raw), flat(name)) {
				return Name
			}
			continue
		}
		bare := strings.TrimSuffix(strings.TrimLeft(name, "-"), "()")
		owner, last := "", bare
		if i := strings.LastIndexAny(bare, ".:"); i > 0 && i < len(bare)-1 {
			owner, last = strings.TrimRight(bare[:i], ":"), bare[i+1:]
		}
		// Type.Method stands in two places of the line that defines it.
		if !token(raw, bare) && (owner == "" || !token(raw, owner) || !token(raw, last)) {
			return Name
		}
		if first && !introduced(raw, bare) && (owner == "" || !introduced(raw, last)) {
			return Definition
		}
		first = false
	}
	return ""
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// prose joins lines without the signs of comments, so that a quote may run over their ends.
func prose(lines []string) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimLeft(strings.TrimSpace(l), "/#*-;> ")
	}
	return flat(strings.Join(out, " "))
}
