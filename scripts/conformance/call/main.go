// Call is a program against the Go client that oapi-codegen makes of the
// document: it compiles, and talks to a server.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"conformance/client"

	"github.com/oapi-codegen/runtime/types"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("the Go client works")
}

func run(ctx context.Context) error {
	c, err := client.NewClientWithResponses(os.Getenv("YARD_URL"),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+os.Getenv("YARD_TOKEN"))
			return nil
		}))
	if err != nil {
		return err
	}
	size := int64(5) // every integer of the document has 64 bits, and none has a type of its own
	tasks, err := c.TaskListWithResponse(ctx, &client.TaskListParams{PerPage: &size})
	if err != nil {
		return err
	}
	if tasks.JSON200 == nil || tasks.JSON200.NextCursor != nil {
		return fmt.Errorf("tasks: %s %s", tasks.Status(), tasks.Body)
	}
	none, err := c.TaskAttemptsWithResponse(ctx, types.UUID{15: 1}, nil)
	if err != nil {
		return err
	}
	if none.ApplicationproblemJSON404 == nil || none.ApplicationproblemJSON404.Status != 404 {
		return errors.New("an unknown task: " + none.Status())
	}
	return nil
}
