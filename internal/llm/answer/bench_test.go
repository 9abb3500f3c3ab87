package answer_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/llm/answer"
)

// BenchmarkCount counts a stream of 100 events, as the gateway does.
func BenchmarkCount(b *testing.B) {
	var body strings.Builder
	for i := range 100 {
		fmt.Fprintf(&body, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1790000000,\"model\":\"gpt-5\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word %d\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n", i)
	}
	text := []byte(body.String())
	o := answer.Options{API: answer.Chat, Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r := answer.New(o)
		r.Write(text)
	}
}
