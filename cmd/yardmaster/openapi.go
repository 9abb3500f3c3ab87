package main

import (
	"context"
	"fmt"

	"yardmaster/internal/app"
)

func runOpenAPI(_ context.Context, args []string) error {
	if _, err := parse(flags("openapi"), args); err != nil {
		return err
	}
	b, err := app.Document()
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", b)
	return nil
}
