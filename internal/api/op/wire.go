package op

import (
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wire are the options with which every answer is encoded: a nil list is written as an
// empty one, and times are RFC 3339 in UTC with milliseconds at most.
var wire = json.JoinOptions(
	json.FormatNilSliceAsNull(false),
	json.Deterministic(true), // answers are compared with those that are kept for retries
	json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
		b := append(e.AvailableBuffer(), '"')
		b = t.UTC().Truncate(time.Millisecond).AppendFormat(b, time.RFC3339Nano)
		return e.WriteValue(append(b, '"'))
	})),
)
