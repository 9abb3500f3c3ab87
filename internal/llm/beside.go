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
// which a byte may be many tokens. They are looked for between the quotes of JSON, so a text that
// speaks of them is none: there each quote has a backslash before it.
var (
	imageWords = [][]byte{[]byte(`image"`), []byte(`image_url"`)}
	otherWords = [][]byte{
		[]byte(`file_id"`), []byte(`file_url"`), []byte(`file_data"`), []byte(`file_uri"`), []byte(`fileUri"`), []byte(`fileData"`),
		[]byte(`item_reference"`), []byte(`"document"`), []byte(`inlineData"`), []byte(`inline_data"`),
		[]byte(`"web_search`), []byte(`"web_fetch`), []byte(`"file_search"`), []byte(`"google_search`), []byte(`"googleSearch`),
		[]byte(`"code_execution`), []byte(`"code_interpreter`), []byte(`"url_context"`), []byte(`"urlContext"`),
	}
	// escaped begins a letter that is written by its number, as nobody writes these words.
	escaped = [][]byte{[]byte(`\u004`), []byte(`\u005`), []byte(`\u006`), []byte(`\u007`)}
)

// beside looks at the body, once.
func (q *Request) beside() beside {
	if q.seen != nil {
		return *q.seen
	}
	b := beside{elsewhere: q.refers}
	for _, w := range imageWords {
		b.images += int64(bytes.Count(q.body, w))
	}
	for _, words := range [][][]byte{otherWords, escaped} {
		for _, w := range words {
			b.elsewhere = b.elsewhere || bytes.Contains(q.body, w)
		}
	}
	q.seen = &b
	return b
}

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
