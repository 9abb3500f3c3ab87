package scrub

// kinds are the properties of bytes for the views, as bits.
const (
	isSpace   = 1 << iota // or a control character
	isEscape              // may begin an escape
	isSign                // may stand between numbers
	isMargin              // may stand before lines: quotes, diffs, comments
	isHex                 // a digit of base 16
	isNumeric             // a digit of base 10, or a sign
	isSpecial             // views have to examine it in any state
)

var kinds = func() (t [256]uint8) {
	for i := range t {
		b := byte(i)
		if b <= ' ' || b == 0x7f {
			t[i] |= isSpace
		}
		if escapes[b] {
			t[i] |= isEscape
		}
		if hexDigit[b] < 16 {
			t[i] |= isHex
		}
		if hexDigit[b] < 10 {
			t[i] |= isNumeric
		}
	}
	t['-'] |= isNumeric
	for _, b := range []byte(",;:.-_+*|#\"'[](){}<>") {
		t[b] |= isSign
	}
	for _, b := range []byte("+-><|#*") {
		t[b] |= isMargin
	}
	for _, b := range []byte("$\x1b\n") {
		t[b] |= isSpecial
	}
	return t
}()

// fold maps the two alphabets of base64 to one.
var fold = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
	}
	t['-'], t['_'] = '+', '/'
	return t
}()

// view finds secrets in unescaped text, with any white space between their
// characters.
type view struct {
	calm bool // only digits, line ends and signs matter to the views other than text

	text cursor

	// lines is the text without what programs print before and after each line.
	lines   shadow
	waiting symbols // symbols that may not belong to the text
	margin  margin

	hex  digitsView
	dump dumpView
	dec  numbers
	oct  numbers

	color int // progress in a control sequence for a terminal
}

// margin is the place in a line of the view without margins.
type margin int8

const (
	inText  margin = iota
	atStart        // only white space so far
	inToken        // the waiting symbols may be an address or a line number
	behind         // after a margin
	atEnd          // the waiting symbol is an end mark if the line ends here
)

// shortestAddress and longestAddress limit the number of digits in the address of a
// dump's line.
const (
	shortestAddress = 6
	longestAddress  = 16
)

// longestNumber limits the number of digits of a line number, or of the address in
// a dump that shows characters.
const longestNumber = 8

// esc begins a control sequence; a bracket after it begins one with parameters.
const (
	esc   = 0x1b
	inCSI = 2
)

func (v *view) put(b byte, from, to int64) {
	k := kinds[b]
	if v.color != 0 || b == esc {
		if v.calm = false; v.control(b) {
			return
		}
	}
	if k&isHex != 0 || !v.hex.quiet || b == '\n' || v.dump.apart {
		v.hex.put(b, k, from, to)
		v.dump.put(&v.hex, b, k, from, to)
	}
	if k&isNumeric != 0 || v.dec.busy || v.oct.busy {
		v.dec.put(b, k, from, to)
		v.oct.put(b, k, from, to)
	}
	if v.lines.apart || k&isSpecial != 0 {
		v.line(b, k, from, to)
	}
	if k&isSpace == 0 {
		v.text.step(fold[b], from, to)
	}
	if v.lines.apart && v.margin == inText {
		v.lines.join(&v.text)
	}
	v.calm = v.hex.quiet && !v.dump.apart && !v.lines.apart && !v.dec.busy && !v.oct.busy && v.color == 0
}

// control tells whether b belongs to a control sequence such as ESC [ 31 m, with
// which programs colour text.
func (v *view) control(b byte) bool {
	switch {
	case b == esc:
		v.color = 1
	case v.color == 1 && b == '[':
		v.color = inCSI
	case v.color == inCSI && 0x20 <= b && b < 0x40:
	case v.color == inCSI && 0x40 <= b && b < 0x7f:
		v.color = 0
	default:
		v.color = 0
		return false
	}
	return true
}

// line passes the text to lines without its margins.
func (v *view) line(b byte, k uint8, from, to int64) {
	switch v.margin {
	case atStart:
		switch {
		case k&isSpace != 0:
			return
		case k&isMargin != 0:
			// Quote marks nest; of the other marks the first is the margin, and the
			// next is text.
			if b != '>' && b != '|' {
				v.margin = behind
			}
			return
		case k&isHex != 0:
			v.margin = inToken
			v.waiting.add(fold[b], from, to)
			return
		}
	case behind:
		if k&isSpace != 0 && b != '\n' {
			return
		}
	case inToken:
		switch {
		case k&isHex != 0 && len(v.waiting.text) < longestNumber:
			v.waiting.add(fold[b], from, to)
			return
		case b == ':' || b == '\t' || b == ' ' && len(v.waiting.text) >= shortestAddress:
			v.waiting.drop(len(v.waiting.text))
			v.margin = behind
			return
		}
	case atEnd:
		if b == '\n' {
			v.waiting.drop(len(v.waiting.text))
		}
	}
	v.release()
	switch b {
	case '\n':
		v.lines.part(&v.text)
		v.margin = atStart
	case '$':
		v.lines.part(&v.text)
		v.margin = atEnd
		v.waiting.add(b, from, to)
	default:
		v.margin = inText
		if k&isSpace == 0 {
			v.lines.step(fold[b], from, to)
		}
	}
}

// release passes the waiting symbols on as text.
func (v *view) release() {
	for i, b := range v.waiting.text {
		v.lines.step(b, v.waiting.from[i], v.waiting.to[i])
	}
	v.waiting.drop(len(v.waiting.text))
}

// finish ends the text at a position.
func (v *view) finish(end int64) {
	v.release()
	v.hex.release()
	v.dump.release()
	v.dump.endLine(end)
	v.dec.end()
	v.oct.end()
}

func (v *view) undecided(end int64) int64 {
	first := min(v.text.undecided(end, true), v.lines.undecided(end), v.hex.digits.undecided(end, false), v.dump.undecided(end),
		v.dec.undecided(end), v.oct.undecided(end))
	if v.dump.tail > 0 && end-v.dump.tail <= maxGap {
		first = min(first, v.dump.tail)
	}
	return first
}

// digitsView finds secrets in digits of base 16, with any signs between them, as in
// "41 42", "41:42" and "0x41, 0x42".
type digitsView struct {
	digits  cursor
	waiting symbols // one digit: a zero that begins a number together with an x, or the first digit of a number
	number  bool    // after 0x, where a single digit is a byte
	inside  bool    // the byte before is a digit
	quiet   bool    // no form can have begun
}

func (d *digitsView) put(b byte, k uint8, from, to int64) {
	switch {
	case k&isHex != 0:
		if d.quiet = false; !d.inside && (b == '0' || d.number) {
			d.inside = true
			d.waiting.add(hexDigit[b], from, to)
			return
		}
		d.number = false
		d.release()
		d.inside = true
		d.digits.step(hexDigit[b], from, to)
		return
	case len(d.waiting.text) > 0 && !d.number && b|0x20 == 'x':
		d.waiting.drop(1)
		d.number, d.inside = true, false
		return
	case k&(isSpace|isSign) == 0:
		d.release()
		d.digits.reset()
		d.quiet = true
	default:
		d.release()
	}
	d.number, d.inside = false, false
}

// release passes the waiting symbols on as digits.
func (d *digitsView) release() {
	for i, b := range d.waiting.text {
		if d.number {
			d.digits.step(0, d.waiting.from[i], d.waiting.to[i])
		}
		d.digits.step(b, d.waiting.from[i], d.waiting.to[i])
	}
	d.waiting.drop(len(d.waiting.text))
}

// dumpView finds secrets in dumps of bytes: digits of base 16 without the addresses
// before them and the text after them.
type dumpView struct {
	shadow
	waiting symbols // an address, or digits
	place   place
	spaces  uint8 // number of spaces in a row
	colon   bool  // a colon followed the address of this line
	lines   int8  // for so many lines, digits may be text beside a dump
	tail    int64 // end of the last secret in this line, or 0; the text beside the digits repeats it
}

// place is the place of a dump in a line.
type place int8

const (
	inDump    place = iota // after an address
	lineStart              // only signs so far
	lineToken              // the waiting symbols are an address or digits
	beside                 // the digits of this line have ended
	elsewhere              // in a line without an address
)

func (d *dumpView) put(all *digitsView, b byte, k uint8, from, to int64) {
	if b == '\n' {
		d.release()
		d.endLine(from)
		d.part(&all.digits)
		d.place, d.lines = lineStart, max(d.lines-1, 0)
		return
	}
	if d.tail > 0 && from-d.tail > maxGap {
		d.tail = 0
	}
	if !d.apart || d.place == beside {
		return
	}
	if k&isHex != 0 {
		switch {
		case d.place > lineToken:
			if d.lines == 0 {
				d.step(hexDigit[b], from, to)
			}
		case d.place == inDump:
			d.spaces = 0
			if d.step(hexDigit[b], from, to); len(d.found) > 0 && d.found[len(d.found)-1].to == to {
				d.tail = to
			}
		case len(d.waiting.text) < longestAddress:
			d.place = lineToken
			d.waiting.add(hexDigit[b], from, to)
		default:
			d.release()
			d.place = elsewhere
			d.step(hexDigit[b], from, to)
		}
		return
	}
	if d.place == lineToken {
		if n := len(d.waiting.text); n >= shortestAddress && (b == ':' || k&isSpace != 0 && b != '\r') {
			d.waiting.drop(n)
			d.place, d.colon, d.spaces, d.lines = inDump, b == ':', 0, 4
			return
		}
		d.release()
		d.place = elsewhere
	}
	if d.lines > 0 && d.place != inDump && k&isSpace == 0 {
		d.place = beside
		return
	}
	switch {
	case k&(isSpace|isSign) == 0:
		d.reset()
		d.place = elsewhere
	case d.place == inDump && (b == '|' || b == '>'):
		d.place = beside
	case d.place == inDump && b == ' ':
		if d.spaces++; d.colon && d.spaces == 2 {
			d.place = beside
		}
	}
	if d.place == elsewhere && d.lines == 0 && len(all.waiting.text) == 0 {
		d.join(&all.digits)
	}
}

// endLine adds the rest of a line to the secret that the line contains.
func (d *dumpView) endLine(at int64) {
	if d.tail > 0 && at-d.tail <= maxGap {
		d.found = append(d.found, span{d.tail, at})
	}
	d.tail = 0
}

func (d *dumpView) release() {
	for i, b := range d.waiting.text {
		if d.lines == 0 {
			d.step(b, d.waiting.from[i], d.waiting.to[i])
		}
	}
	d.waiting.drop(len(d.waiting.text))
}

// numbers finds secrets in lists of numbers, one for each byte, or in base 8 also
// one for each two bytes, with the first as the lower byte.
type numbers struct {
	bytes    cursor
	base     int
	busy     bool // a form can have begun
	value    int
	length   int // number of digits of the current number
	negative bool
	from, to int64
}

func (n *numbers) put(b byte, k uint8, from, to int64) {
	if d := int(hexDigit[b]); d < n.base {
		if n.length == 0 {
			n.from, n.value, n.busy = from, 0, true
		}
		if n.length++; n.length <= 6 {
			n.value = n.value*n.base + d
		}
		n.to = to
		return
	}
	n.end()
	if b == '-' {
		n.negative, n.busy = true, true
	}
	if k&(isSpace|isSign) == 0 {
		n.bytes.reset()
		n.busy = false
	}
}

// end takes the current number, which is complete.
func (n *numbers) end() {
	from, length, negative := n.from, n.length, n.negative
	n.length, n.negative = 0, false
	switch {
	case length == 0:
	case length <= 3 && negative && n.base == 10 && 0 < n.value && n.value <= 128:
		n.bytes.step(byte(-n.value), from, n.to) // Java's bytes have a sign
	case length <= 3 && n.value < 256:
		n.bytes.step(byte(n.value), from, n.to)
	case length == 6 && n.base == 8 && n.value < 1<<16:
		n.bytes.step(byte(n.value), from, n.to)
		n.bytes.step(byte(n.value>>8), from, n.to)
	} // all other numbers are addresses
}

// undecided returns the begin of a list of numbers that may be a secret. Lists
// count from gate numbers on, including the incomplete last one.
func (n *numbers) undecided(end int64) int64 {
	c := &n.bytes
	if n.length > 0 && c.state == 0 && end-c.to <= maxGap {
		most := min(c.n-c.begin, int64(c.a.gate-1))
		if d := int64(c.a.depth[c.recent(int(most))]); d == int64(c.a.gate-1) {
			return c.start(d)
		}
	}
	return c.undecided(end, false)
}
