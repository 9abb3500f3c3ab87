package config

import "net/mail"

// Author is the name and the address that sign commits.
func (c *Config) Author() (name, address string) {
	a, err := mail.ParseAddress(c.CommitAuthor)
	if err != nil {
		return "Yardmaster", "yardmaster@localhost" // of an unchecked configuration
	}
	return a.Name, a.Address
}
