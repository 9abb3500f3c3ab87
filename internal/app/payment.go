package app

import (
	"yardmaster/internal/config"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/payment"
	"yardmaster/internal/flow"
	"yardmaster/internal/stripe"
)

// payment is what the domain of payments needs. Without a key of Stripe it has no provider.
func (a *App) payment(budgets *budget.Service) payment.Needs {
	n := payment.Needs{
		DB: a.db, Hub: a.hub, Due: a.due, Logger: a.log, Clock: a.clock, BaseURL: a.base, Spending: flow.Spending{Budgets: budgets},
		Secret: a.cfg.StripeHook, Grace: days(a.cfg.PaymentGrace),
		Prices: map[string][]string{
			payment.Seats: config.Prices(a.cfg.StripeSeats), payment.OSSDonor: config.Prices(a.cfg.StripeDonor),
		},
	}
	if a.cfg.StripeKey != "" {
		n.Provider = stripe.New(a.cfg.StripeURL, a.cfg.StripeKey)
	}
	return n
}
