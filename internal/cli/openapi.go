package cli

import (
	"context"
	"fmt"

	"yardmaster/internal/app"
)

func runOpenAPI(context.Context, []string) error {
	b, err := app.Document()
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", b)
	return nil
}
