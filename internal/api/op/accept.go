package op

import (
	"strconv"
	"strings"
)

// PrefersPage tells from an Accept header whether a person reads the answer: the
// header names text/html, and no type of JSON with a greater weight.
func PrefersPage(accept string) bool {
	html, data := 0.0, 0.0
	for part := range strings.SplitSeq(strings.ToLower(accept), ",") {
		kind, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		q := 1.0
		for p := range strings.SplitSeq(params, ";") {
			if v, ok := strings.CutPrefix(strings.TrimSpace(p), "q="); ok {
				n, err := strconv.ParseFloat(v, 64)
				if err != nil {
					n = 0
				}
				q = n
			}
		}
		switch kind = strings.TrimSpace(kind); {
		case kind == "text/html" || kind == "application/xhtml+xml":
			html = max(html, q)
		case kind == "application/json" || strings.HasSuffix(kind, "+json"):
			data = max(data, q)
		}
	}
	return html > 0 && html >= data
}
