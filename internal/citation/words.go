package citation

import (
	"strings"
	"unicode"

	"yardmaster/internal/lazy"
)

var number = lazy.New(`\b\d[\d_,.]*\b`)

// units are what a unit is called beside a number, in a sentence and in a program.
var units = []struct {
	said  string
	forms []string
}{
	{"ms", []string{"ms", "milli"}},
	{"millisecond", []string{"ms", "milli"}},
	{"second", []string{"sec", "s\"", " s", "s ", "s,", "s)"}},
	{"minute", []string{"min", "m\""}},
	{"hour", []string{"hour", "h\""}},
	{"day", []string{"day"}},
	{"kb", []string{"kb", "kib", "<<10", "<< 10", "1024"}},
	{"kib", []string{"kb", "kib", "<<10", "<< 10", "1024"}},
	{"mb", []string{"mb", "mib", "<<20", "<< 20"}},
	{"mib", []string{"mb", "mib", "<<20", "<< 20"}},
	{"percent", []string{"%", "percent"}},
}

// plain takes the signs out of numbers that only group their digits.
var plain = strings.NewReplacer(",", "", "_", "")

// checkNumbers finds a number of a sentence that no line has, or has with another unit. A status
// of HTTP may be written as its name.
func checkNumbers(bare string, lines []string) Fault {
	for _, at := range number.FindAllStringIndex(bare, -1) {
		n := strings.TrimRight(plain.Replace(bare[at[0]:at[1]]), ".")
		var with []string
		for _, l := range lines {
			if token(plain.Replace(l), n) || glued(l, n) {
				with = append(with, strings.ToLower(l)+" ")
			}
		}
		if len(with) == 0 && !status(n, lines) {
			return Number
		}
		if len(with) > 0 && !unit(bare[at[1]:], with) {
			return Unit
		}
	}
	return ""
}

// glued tells whether a number stands with its unit in one word, as in 30s.
func glued(line, n string) bool {
	for _, u := range []string{"ms", "s", "m", "h", "d", "k", "kb", "mb", "kib", "mib", "px", "em", "rem", "K", "M", "KB", "MB"} {
		if token(line, n+u) {
			return true
		}
	}
	return false
}

// unit tells whether one of the lines has the unit that follows a number.
func unit(after string, lines []string) bool {
	f := strings.Fields(strings.ToLower(strings.TrimPrefix(after, "-")))
	if len(f) == 0 {
		return true
	}
	for _, u := range units {
		if !strings.HasPrefix(strings.Trim(f[0], ".,;)"), u.said) {
			continue
		}
		for _, l := range lines {
			for _, form := range u.forms {
				if strings.Contains(l, form) {
					return true
				}
			}
		}
		return false
	}
	return true
}

// statuses are the names of those of HTTP that programs write as names, letters alone.
var statuses = map[string]string{
	"200": "ok", "201": "created", "202": "accepted", "204": "nocontent", "301": "movedpermanently", "302": "found", "303": "seeother",
	"304": "notmodified", "307": "temporaryredirect", "308": "permanentredirect", "400": "badrequest", "401": "unauthorized",
	"402": "paymentrequired", "403": "forbidden", "404": "notfound", "405": "methodnotallowed", "406": "notacceptable",
	"408": "requesttimeout", "409": "conflict", "410": "gone", "411": "lengthrequired", "412": "preconditionfailed",
	"413": "requestentitytoolarge", "415": "unsupportedmediatype", "416": "requestedrangenotsatisfiable", "422": "unprocessableentity",
	"425": "tooearly", "429": "toomanyrequests", "500": "internalservererror", "501": "notimplemented", "502": "badgateway",
	"503": "serviceunavailable", "504": "gatewaytimeout", "507": "insufficientstorage",
}

// status tells whether lines have the name of a status of HTTP.
func status(n string, lines []string) bool {
	name, known := statuses[n]
	return known && strings.Contains(letters(strings.Join(lines, "\n")), name)
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// stop are words that say nothing about what a sentence is about.
var stop = func() map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq("a an the is are was were be been being of to in on at by for with and or that which when while so " +
		"than then it its as from into out up how may can cannot could should would will not no nothing because if any all each every one " +
		"this these those there their them they does do did has have had what where whose why who set sets use uses used " +
		"i you we my your our me us about get gets please tell show explain between") {
		all[w] = true
	}
	return all
}()

// Stopped tells whether a word, in lower case, says nothing about what a sentence is about.
func Stopped(word string) bool { return stop[word] }

// Stem takes the commonest English endings off a word in lower case.
func Stem(w string) string {
	for _, s := range []string{"ing", "ed", "es", "s"} {
		if len(w) > len(s)+3 && strings.HasSuffix(w, s) {
			w = strings.TrimSuffix(w, s)
			break
		}
	}
	return strings.TrimSuffix(w, "e")
}

// Parts are a word and, of an identifier, the words that it is made of.
func Parts(word string) []string {
	var parts []string
	rs := []rune(word)
	from := 0
	for i := 1; i < len(rs); i++ {
		if unicode.IsUpper(rs[i]) && unicode.IsLower(rs[i-1]) {
			parts = append(parts, string(rs[from:i]))
			from = i
		}
	}
	return append(parts, string(rs[from:]), word)
}

// wordsOf are the words of a text that count, without their endings.
func wordsOf(s string) map[string]bool {
	out := map[string]bool{}
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		for _, p := range Parts(f) {
			if w := strings.ToLower(p); len(w) > 2 && !stop[w] {
				out[Stem(w)] = true
			}
		}
	}
	return out
}
