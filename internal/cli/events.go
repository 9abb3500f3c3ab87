package cli

import (
	"context"
	"fmt"

	"yardmaster/internal/app"
)

func runEvents(context.Context, []string) error {
	b, err := app.EventsDocument()
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", b)
	return nil
}
