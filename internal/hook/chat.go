package hook

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/secretscan"
)

// Format is what an address understands.
type Format string

// Formats of what is sent. JSON is our own envelope; the others are what incoming webhooks
// of chat programs take.
const (
	JSON    Format = "json"
	Slack   Format = "slack"
	Teams   Format = "teams"
	Discord Format = "discord"
)

// Values lists all formats.
func (Format) Values() []string {
	return []string{string(JSON), string(Slack), string(Teams), string(Discord)}
}

// Said is a message to people in a chat. Title, Text and Repo may hold text of others; URL
// is ours.
type Said struct{ Title, Text, Repo, URL string }

// Characters of a message; every chat takes as many.
const (
	maxTitle = 150
	maxText  = 1500
)

// Chat is a message in one of the formats, other than JSON. What others wrote is inert: it
// calls nobody, makes no link and has no hidden characters.
//
// The shapes are those of Slack's Block Kit (section, plain_text), of Adaptive Cards 1.4 in
// a message of a Teams workflow, and of Discord's "Execute Webhook".
func Chat(format Format, s Said) (string, error) {
	title, text, repo := plain(s.Title), lines(s.Text), plain(s.Repo)
	var out any
	switch format {
	case Slack:
		out = slack(title, text, repo, s.URL)
	case Teams:
		out = teams(title, text, repo, s.URL)
	case Discord:
		out = discord(title, text, repo, s.URL)
	default:
		return "", fmt.Errorf("no chat has the format %q", format)
	}
	b, err := json.Marshal(out)
	return string(b), err
}

type object = map[string]any

func slack(title, text, repo, url string) object {
	// Plain text is shown as it is. The fallback, which notifications of Slack show, is
	// marked up: there the three characters that begin something are escaped.
	blocks := []object{{"type": "section", "text": object{"type": "plain_text", "text": title, "emoji": false}}}
	if text != "" {
		blocks = append(blocks, object{"type": "section", "text": object{"type": "plain_text", "text": text, "emoji": false}})
	}
	at := []object{}
	if repo != "" {
		at = append(at, object{"type": "plain_text", "text": repo, "emoji": false})
	}
	if url != "" {
		at = append(at, object{"type": "mrkdwn", "text": "<" + escape(url) + "|Look at it>"})
	}
	if len(at) > 0 {
		blocks = append(blocks, object{"type": "context", "elements": at})
	}
	return object{
		"text":         strings.ReplaceAll(escape(title), "://", ":\u200b//"),
		"mrkdwn":       false,
		"unfurl_links": false,
		"unfurl_media": false,
		"blocks":       blocks,
	}
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func escape(s string) string { return escaper.Replace(s) }

func teams(title, text, repo, url string) object {
	// A TextBlock is marked up; a TextRun of a RichTextBlock is not.
	said := func(text string, more object) object {
		run := object{"type": "TextRun", "text": text}
		for k, v := range more {
			run[k] = v
		}
		return object{"type": "RichTextBlock", "inlines": []object{run}}
	}
	body := []object{said(title, object{"weight": "Bolder", "size": "Medium"})}
	if repo != "" {
		body = append(body, said(repo, object{"isSubtle": true}))
	}
	if text != "" {
		body = append(body, said(text, nil))
	}
	card := object{
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body,
	}
	if url != "" {
		card["actions"] = []object{{"type": "Action.OpenUrl", "title": "Look at it", "url": url}}
	}
	return object{"type": "message", "attachments": []object{{
		"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card,
	}}}
}

// marks are the characters by which Discord marks text up.
var marks = strings.NewReplacer(
	`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, ">", `\>`, "<", `\<`, "[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`,
	"#", `\#`, "@", "@\u200b", "://", ":\u200b//",
)

func discord(title, text, repo, url string) object {
	embed := object{"title": marks.Replace(title)}
	if url != "" {
		embed["url"] = url
	}
	if text != "" {
		embed["description"] = marks.Replace(text)
	}
	if repo != "" {
		embed["footer"] = object{"text": repo}
	}
	return object{"embeds": []object{embed}, "allowed_mentions": object{"parse": []string{}}}
}

// plain is text of others on one line, without hidden characters and then without what
// looks like a secret: hidden characters may have kept one from being found before.
func plain(text string) string { return cut(secretscan.Scrub(inert.Line(text)), maxTitle) }

// lines are a text of others, line by line as plain makes them.
func lines(text string) string {
	return cut(strings.TrimSpace(secretscan.Scrub(inert.Lines(text))), maxText)
}

func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
