// Get fetches the documents that GitHub publishes about its API into the cache, so
// that the tests that need them run without a network.
package main

import (
	"context"
	"fmt"
	"os"

	"yardmaster/internal/proof/github/description/source"
)

func main() {
	if err := source.All(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "GitHub's description of its API could not be had:", err)
		os.Exit(1)
	}
}
