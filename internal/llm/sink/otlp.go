package sink

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"yardmaster/internal/llm"
)

// spans are calls as an ExportTraceServiceRequest of OTLP in JSON: a span of a client for each,
// with the attributes of the semantic conventions for generative AI. The calls of a session are
// one trace.
func spans(calls []Call, version string) ([]byte, error) {
	all := make(list, len(calls))
	for i := range calls {
		all[i] = span(&calls[i])
	}
	return json.Marshal(object{"resourceSpans": list{object{
		"resource": object{"attributes": list{text("service.name", "yardmaster"), text("service.version", version)}},
		"scopeSpans": list{object{
			"scope": object{"name": "yardmaster/model-calls", "version": version},
			"spans": all,
		}},
	}}})
}

// Kinds and statuses of spans, as OTLP numbers them.
const (
	spanClient  = 3
	statusError = 2
)

func span(c *Call) object {
	operation := "chat"
	if isGemini(c.API) {
		operation = "generate_content"
	}
	attributes := list{
		text("gen_ai.operation.name", operation),
		text("gen_ai.provider.name", providerName(llm.Provider(c.Provider))),
		text("gen_ai.request.model", c.Model),
		number("gen_ai.usage.input_tokens", c.Usage.Input+c.Usage.CacheRead+c.Usage.CacheWrite),
		number("gen_ai.usage.output_tokens", c.Usage.Output),
		number("gen_ai.usage.cache_read.input_tokens", c.Usage.CacheRead),
		number("gen_ai.usage.cache_creation.input_tokens", c.Usage.CacheWrite),
		number("http.response.status_code", int64(c.Status)),
		text("yardmaster.account.id", c.AccountID),
		text("yardmaster.call.id", c.ID),
		flag("yardmaster.input.cut", c.InputCut),
		flag("yardmaster.output.cut", c.OutputCut),
	}
	if c.SessionID != "" {
		attributes = append(attributes, text("gen_ai.conversation.id", c.SessionID))
	}
	if c.Cost != nil {
		attributes = append(attributes, number("yardmaster.cost_micros", *c.Cost))
	}
	if len(c.System) > 0 {
		attributes = append(attributes, document("gen_ai.system_instructions", c.System))
	}
	if len(c.Input) > 0 {
		attributes = append(attributes, document("gen_ai.input.messages", c.Input))
	}
	if len(c.Output) > 0 {
		attributes = append(attributes, document("gen_ai.output.messages", c.Output))
		if finish := c.Output[0].Finish; finish != "" {
			attributes = append(attributes, object{"key": "gen_ai.response.finish_reasons", "value": object{
				"arrayValue": object{"values": list{object{"stringValue": finish}}},
			}})
		}
	}
	status := object{}
	if c.Fault != "" || c.Status/100 != 2 {
		kind := c.Fault
		if kind == "" {
			kind = strconv.Itoa(c.Status)
		}
		attributes = append(attributes, text("error.type", kind))
		status = object{"code": statusError}
	}
	return object{
		"traceId": digest("trace", c.SessionID+c.AccountID, 16), "spanId": digest("span", c.ID, 8),
		"name": operation + " " + c.Model, "kind": spanClient,
		"startTimeUnixNano": nanos(c.At), "endTimeUnixNano": nanos(c.At.Add(time.Duration(c.Duration) * time.Millisecond)),
		"attributes": attributes, "status": status,
	}
}

// providerName is a provider as the semantic conventions name it, where they do.
func providerName(p llm.Provider) string {
	if p == llm.Google {
		return "gcp.gemini"
	}
	return string(p)
}

// digest is an id of so many bytes, in hex, that follows from another one.
func digest(of, id string, bytes int) string {
	sum := sha256.Sum256([]byte(of + "/" + id))
	return hex.EncodeToString(sum[:bytes])
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func text(key, value string) object {
	return object{"key": key, "value": object{"stringValue": value}}
}

func number(key string, value int64) object { // 64 bits are text in the JSON of protocol buffers
	return object{"key": key, "value": object{"intValue": strconv.FormatInt(value, 10)}}
}

func flag(key string, value bool) object {
	return object{"key": key, "value": object{"boolValue": value}}
}

// document is a value as the text of its JSON, as the conventions have it for spans.
func document(key string, value any) object {
	b, err := json.Marshal(value)
	if err != nil {
		b = []byte("[]") // it was made of JSON
	}
	return text(key, string(b))
}
