package main

import (
	"context"
	"fmt"

	"yardmaster/internal/app"
)

func runEvents(_ context.Context, args []string) error {
	if _, err := parse(flags("events"), args); err != nil {
		return err
	}
	b, err := app.EventsDocument()
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", b)
	return nil
}
