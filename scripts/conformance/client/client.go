// Package client is generated from the document by scripts/conformance/run; it
// is not committed.
package client

import _ "github.com/oapi-codegen/runtime" // what is generated needs it
