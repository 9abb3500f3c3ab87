package hook

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// Text of others calls nobody, makes no link and stays in its place, in every chat.
func TestChat(t *testing.T) {
	t.Parallel()
	s := Said{
		Title: "<!channel> @everyone *now* \u202e\r\n[x](https://evil.example)", Repo: "acme/<web>", URL: "https://ym.example.com/ui/prs/1?a=b&c=d",
		Text: "<https://evil.example|ok> <@U123> <at>all</at>\n" + strings.Repeat("é", 5000),
	}
	for _, format := range []Format{JSON, Slack, Teams, Discord} {
		body, err := Chat(format, s)
		if format == JSON {
			if err == nil {
				t.Errorf("%s is no chat", format)
			}
			continue
		}
		var v any
		if err != nil || json.Unmarshal([]byte(body), &v) != nil {
			t.Fatalf("%s: %v %s", format, err, body)
		}
		if again, _ := Chat(format, s); again != body {
			t.Errorf("%s: two attempts differ", format)
		}
		for _, text := range texts(v, "") {
			at, text, _ := strings.Cut(text, "\x00")
			if utf8.RuneCountInString(text) > 2000 || strings.ContainsAny(text, "\u202e\r") {
				t.Errorf("%s: %s has %d characters: %.80q", format, at, utf8.RuneCountInString(text), text)
			}
			if format == Discord {
				text = strings.ReplaceAll(text, `\<`, "") // escaped
			}
			marked := format == Slack && (at == ".text" || strings.HasSuffix(at, "mrkdwn"))
			if (marked || format == Discord && !strings.HasSuffix(at, "footer.text")) && text != s.URL &&
				(strings.Contains(text, "<!") || strings.Contains(text, "<@") || strings.Contains(text, "@everyone") && format == Discord ||
					strings.Contains(text, "https://evil")) {
				t.Errorf("%s: %s is marked up and has %q", format, at, text)
			}
		}
		switch format {
		case Slack:
			if !strings.Contains(body, `\u003chttps://ym.example.com/ui/prs/1?a=b\u0026amp;c=d|Look at it\u003e`) {
				t.Errorf("no link: %s", body)
			}
		case Teams:
			if strings.Contains(body, `"TextBlock"`) || !strings.Contains(body, "application/vnd.microsoft.card.adaptive") {
				t.Errorf("%s", body)
			}
		case Discord:
			if !strings.Contains(body, `"allowed_mentions":{"parse":[]}`) {
				t.Errorf("%s", body)
			}
		}
	}
}

// A hidden character does not carry a secret past the scan.
func TestChatSecret(t *testing.T) {
	t.Parallel()
	split := "gh\u200bp_" + strings.Repeat("a1B2", 9)
	for _, format := range []Format{Slack, Teams, Discord} {
		body, err := Chat(format, Said{Title: split, Text: "it is\n" + split, Repo: "acme/web", URL: "https://ym.example.com/"})
		if plain := strings.ReplaceAll(body, `\`, ""); err != nil || strings.Contains(plain, "a1B2a1B2") {
			t.Errorf("%s: %v %s", format, err, body)
		}
	}
}

// texts are the texts in a document, with where they are.
func texts(v any, at string) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		kind, _ := v["type"].(string)
		for k, w := range v {
			where := at + "." + k
			if k == "text" && (kind == "mrkdwn" || kind == "plain_text") {
				where += "." + kind
			}
			out = append(out, texts(w, where)...)
		}
	case []any:
		for _, w := range v {
			out = append(out, texts(w, at)...)
		}
	case string:
		out = append(out, at+"\x00"+v)
	}
	return out
}
