package payment

import (
	"context"
	"errors"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/stripe"
)

// over are the states of a subscription at Stripe that is paid for no more.
var over = []string{"canceled", "incomplete_expired"}

// End ends all subscriptions of an account at the provider. A second call ends those that are left.
func (s *Service) End(ctx context.Context, account string) error {
	var c customer
	var ok bool
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) { c, ok, err = customerOf.Maybe(tx, account); return err })
	if err != nil || !ok || s.Provider == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	all, err := s.Provider.Subscriptions(ctx, c.CustomerID)
	for _, sub := range all {
		if err == nil && !slices.Contains(over, sub.Status) {
			if err = s.Provider.Cancel(ctx, sub.ID); errors.Is(err, stripe.ErrMissing) {
				err = nil // it has ended with its customer
			}
		}
	}
	if errors.Is(err, stripe.ErrMissing) {
		return nil
	}
	return err
}
