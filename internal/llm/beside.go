package llm

import (
	"bytes"
	"strings"
)

// beside is what a prompt may have beside the bytes of its text.
type beside struct {
	images    int64 // at most; each is more tokens than its address has bytes
	elsewhere bool  // what is read is not in the body: files, pages, earlier turns that a provider has kept
}

// The words of the APIs by which a call names what its body does not hold, or holds in a form of
// which a byte may be many tokens. They are looked for with the quotes of JSON, so a text that
// speaks of them is none: there each quote has a backslash before it. Nor is a function of the
// caller's own that is called so, or has a parameter of that name.
var (
	imageWords = [][]byte{[]byte(`image"`), []byte(`image_url"`)}
	// kinds are how the values of "type" begin, and texts are members that have a text.
	kinds = [][]byte{
		[]byte(`"document"`), []byte(`"item_reference"`), []byte(`"web_search`), []byte(`"web_fetch`), []byte(`"file_search"`),
		[]byte(`"code_execution`), []byte(`"code_interpreter"`),
	}
	texts = [][]byte{[]byte(`"file_id"`), []byte(`"file_url"`), []byte(`"file_data"`), []byte(`"file_uri"`), []byte(`"fileUri"`)}
	// members have an object, in which nothing else is called so.
	members = [][]byte{
		[]byte(`"fileData"`), []byte(`"inlineData"`), []byte(`"inline_data"`), []byte(`"google_search"`), []byte(`"googleSearch"`),
		[]byte(`"google_search_retrieval"`), []byte(`"googleSearchRetrieval"`),
		[]byte(`"url_context"`), []byte(`"urlContext"`), []byte(`"code_execution"`), []byte(`"codeExecution"`),
	}
)

// beside looks at the body, once.
func (q *Request) beside() beside {
	if q.seen != nil {
		return *q.seen
	}
	var b beside
	for _, w := range imageWords {
		b.images += int64(bytes.Count(q.body, w))
	}
	b.elsewhere = q.refers || has(q.body, kinds, ofType) || has(q.body, texts, isText) || has(q.body, members, isObject) || spelled(q.body)
	q.seen = &b
	return b
}

// has tells whether a body has one of some words where is says so of what stands before and after it.
func has(body []byte, words [][]byte, is func(before, after []byte) bool) bool {
	for _, w := range words {
		for at := 0; ; {
			i := bytes.Index(body[at:], w)
			if i < 0 {
				break
			}
			from := at + i
			if at = from + len(w); is(body[:from], body[at:]) {
				return true
			}
		}
	}
	return false
}

// space is what JSON may have between its parts.
const space = " \t\r\n"

func ofType(before, _ []byte) bool {
	before, ok := bytes.CutSuffix(bytes.TrimRight(before, space), []byte(":"))
	return ok && bytes.HasSuffix(bytes.TrimRight(before, space), []byte(`"type"`))
}

func isText(_, after []byte) bool { return begins(after, '"') }

func isObject(_, after []byte) bool { return begins(after, '{') }

// begins tells whether what stands after the name of a member is a value that begins so.
func begins(after []byte, c byte) bool {
	after, ok := bytes.CutPrefix(bytes.TrimLeft(after, space), []byte(":"))
	return ok && bytes.HasPrefix(bytes.TrimLeft(after, space), []byte{c})
}

// spelled tells whether a body has a letter of these words by its number (\u0069), as nobody writes
// them. In a text that has such a number the backslash has another one before it.
func spelled(body []byte) bool {
	for at := 0; ; {
		i := bytes.Index(body[at:], []byte(`\u00`))
		if i < 0 {
			return false
		}
		from := at + i
		if at = from + len(`\u00`); at < len(body) && body[at] >= '4' && body[at] <= '7' && odd(body[:from+1]) {
			return true
		}
	}
}

// odd tells whether a text ends with an odd number of backslashes.
func odd(text []byte) bool { return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1 }

// beta tells whether the call asks for a beta of Anthropic's whose name begins so: in the header,
// or in the body, where Bedrock has it.
func (q *Request) beta(name string) bool {
	if bytes.Contains(q.body, []byte(`"`+name)) {
		return true
	}
	for _, line := range q.betas {
		for one := range strings.SplitSeq(line, ",") {
			if strings.HasPrefix(strings.TrimSpace(one), name) {
				return true
			}
		}
	}
	return false
}
