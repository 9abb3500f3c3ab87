package cli

import "context"

// openPage opens the page of an object.
func openPage(ctx context.Context, n *noun, id string) error {
	at, err := n.addressOf(ctx, id)
	if err != nil {
		return err
	}
	return browse(ctx, at)
}
