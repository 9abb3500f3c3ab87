package github

import (
	"net/http"
	"strconv"
	"time"

	"yardmaster/internal/codehost/pace"
)

// resourceGraphQL is what GitHub counts queries of its GraphQL API for.
const resourceGraphQL = "graphql"

// resourceOf is what GitHub counts a call to an address for.
func (h *Host) resourceOf(address string) string {
	if address == h.cfg.Addresses.GraphQL {
		return resourceGraphQL
	}
	return pace.Core
}

// noteOf is what an answer says of the limits. See the page "Rate limits for the REST
// API".
func noteOf(resp *http.Response) (n pace.Note) {
	resource := resp.Header.Get("X-Ratelimit-Resource")
	limit, err := strconv.Atoi(resp.Header.Get("X-Ratelimit-Limit"))
	if err == nil && (resource == pace.Core || resource == resourceGraphQL) {
		n.Resource, n.Limit = resource, limit
		n.Remaining, _ = strconv.Atoi(resp.Header.Get("X-Ratelimit-Remaining"))
		n.Reset = until(resp.Header)
	}
	if resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests {
		n.Blocked = min(retryAfter(resp.Header), longestBlock)
	}
	return n
}

// hidden tells whether the headers of a refusal do not say which limit was reached: it is
// a secondary one, which the text alone names.
func hidden(header http.Header) bool {
	return retryAfter(header) == 0 && header.Get("X-Ratelimit-Remaining") != "0"
}

// longestBlock is how long an answer may keep the server from calling.
const longestBlock = time.Hour
