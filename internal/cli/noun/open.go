package noun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"yardmaster/internal/client"
)

// OpenPage opens the page of an object.
func OpenPage(ctx context.Context, n *Noun, id string) error {
	at, err := n.AddressOf(ctx, id)
	if err != nil {
		return err
	}
	return Browse(ctx, at)
}

// Browse opens an address in the browser of BROWSER, or else the system's, and prints it
// where there is none.
func Browse(ctx context.Context, address string) error {
	address = client.Inert(address)
	program := os.Getenv("BROWSER")
	if program == "" {
		switch runtime.GOOS {
		case "darwin":
			program = "open"
		case "windows":
			program = "explorer"
		default:
			program = "xdg-open"
		}
	}
	if path, err := exec.LookPath(program); err == nil {
		// What it complains of, such as browsers that it lacks, is no news: the address is printed.
		if exec.CommandContext(ctx, path, address).Run() == nil {
			fmt.Printf("Opened %s\n", address)
			return nil
		}
	}
	fmt.Printf("Open %s\n", address)
	return nil
}
