package kb

import (
	"encoding/base64"
	"strings"
)

// paragraphs are the parts of a text between blank lines, with runs of blanks as one.
func paragraphs(body string) []string {
	var out []string
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			out = append(out, b.String())
			b.Reset()
		}
	}
	for line := range strings.Lines(body) {
		words := strings.Fields(line)
		if len(words) == 0 {
			end()
			continue
		}
		for _, w := range words {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(w)
		}
	}
	end()
	return out
}

// marked are the paragraphs of a text whose bits are set.
func marked(all []string, bits string) map[string]bool {
	out := map[string]bool{}
	set, err := base64.RawStdEncoding.DecodeString(bits)
	if err != nil {
		return out
	}
	for i, p := range all {
		if i/8 < len(set) && set[i/8]&(1<<(i%8)) != 0 {
			out[p] = true
		}
	}
	return out
}

// mark has the bits of the paragraphs of a text that are among some; "" for none.
func mark(all []string, some map[string]bool) string {
	if len(some) == 0 {
		return ""
	}
	set := make([]byte, (len(all)+7)/8)
	for i, p := range all {
		if some[p] {
			set[i/8] |= 1 << (i % 8)
		}
	}
	return base64.RawStdEncoding.EncodeToString(set)
}

// keptByPeople works out which paragraphs of a text are a person's: those that were one's
// before, and, if a person writes, those that are new. lost are the paragraphs of people
// that the text lacks.
func keptByPeople(before, bits, after string, person bool) (next string, lost []string) {
	old, now := paragraphs(before), paragraphs(after)
	theirs := marked(old, bits)
	there := make(map[string]bool, len(now))
	for _, p := range now {
		there[p] = true
	}
	told := map[string]bool{}
	for _, p := range old {
		if theirs[p] && !there[p] && !told[p] {
			told[p] = true
			lost = append(lost, p)
		}
	}
	if person {
		known := make(map[string]bool, len(old))
		for _, p := range old {
			known[p] = true
		}
		for _, p := range now {
			if !known[p] {
				theirs[p] = true
			}
		}
	}
	for p := range theirs {
		if !there[p] {
			delete(theirs, p)
		}
	}
	return mark(now, theirs), lost
}
