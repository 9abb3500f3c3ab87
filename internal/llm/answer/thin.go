package answer

// thinText is how many characters a long document keeps of each of its strings.
const thinText = 64

// thin shortens the strings of a JSON text, in any chunking, so that what is counted and judged of
// a document of any length takes little memory. The form of the text stays as it is.
type thin struct {
	on     bool // the text is being shortened
	inside bool // a string
	kept   int  // characters of that string so far, an escape being one
	escape int  // bytes that an escape goes on for; slash: a backslash was the last byte
	drop   bool // the character that goes on
}

const slash = -1

// start shortens what is there of a text, in place.
func (t *thin) start(text []byte) []byte {
	*t = thin{on: true}
	return t.add(text[:0], text)
}

// add appends the next bytes of the text, shortened. p may be the bytes behind to.
func (t *thin) add(to, p []byte) []byte {
	for _, c := range p {
		switch {
		case !t.inside:
			t.inside, t.kept, t.drop = c == '"', 0, false
		case t.escape == slash:
			if t.escape = 0; c == 'u' {
				t.escape = 4
			}
		case t.escape > 0:
			t.escape--
		case c == '"':
			t.inside, t.drop = false, false
		default:
			if t.drop = t.kept >= thinText; c == '\\' {
				t.escape = slash
			}
			t.kept++
		}
		if !t.drop {
			to = append(to, c)
		}
	}
	return to
}
