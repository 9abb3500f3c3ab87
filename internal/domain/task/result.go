package task

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"yardmaster/internal/jsonschema"
	"yardmaster/internal/lazy"
)

// resultBlock is a fenced block of JSON.
var resultBlock = lazy.New("(?ms)^[ \t]*```json[ \t]*\r?\n(.*?)^[ \t]*```[ \t]*\r?$")

// maxMismatch is the longest text about a result that is refused, in bytes.
const maxMismatch = 1500

// Result returns the result of a try that went well: the last block of JSON in its
// report. A task without a result schema has no result. If the block is missing or not
// valid under the schema, Result returns the failure kind of the try, and why, in words
// for the next try.
func (t *Row) Result(report string) (result jsontext.Value, kind, why string) {
	if t.ResultSchema == nil {
		return nil, "", ""
	}
	blocks := resultBlock.FindAllStringSubmatch(report, -1)
	if len(blocks) == 0 {
		return nil, ReportMissing, "The report does not end with a fenced json block, which the result schema asks for."
	}
	text := strings.TrimSpace(blocks[len(blocks)-1][1])
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, AgentError, shorten("The result at the end of the report is not JSON: " + err.Error())
	}
	schema, err := jsonschema.Parse([]byte(*t.ResultSchema))
	if err != nil {
		return nil, PolicyRefused, shorten("The result schema " + err.Error())
	}
	if err := schema.Validate(value); err != nil {
		return nil, AgentError, shorten("The result at the end of the report is not valid under the result schema: " + err.Error())
	}
	return jsontext.Value(text), "", ""
}

func shorten(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxMismatch)], "") }
