package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// settlePayment checks how payment is taken.
func (c *Config) settlePayment() error {
	if on := c.StripeKey != ""; on != (c.StripeHook != "") || on != (c.StripeSeats != "" || c.StripeDonor != "") {
		return errors.New("stripe-secret-key and stripe-webhook-secret go together, with stripe-seat-price, stripe-donor-price or both")
	}
	u, err := url.Parse(c.StripeURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("stripe-url (from %s): is not an http address", c.sources["stripe-url"])
	}
	c.StripeURL = strings.TrimSuffix(c.StripeURL, "/")
	if c.PaymentGrace < 0 || c.PaymentGrace > 366 {
		return fmt.Errorf("payment-grace (from %s): must be 0 to 366 days", c.sources["payment-grace"])
	}
	return nil
}

// Prices are the ids in a list with commas between.
func Prices(list string) (all []string) {
	for price := range strings.SplitSeq(list, ",") {
		if price = strings.TrimSpace(price); price != "" {
			all = append(all, price)
		}
	}
	return all
}
