package app

import "yardmaster/internal/codehost"

// author signs commits of agents and merges.
func (a *App) author() codehost.Person {
	name, address := a.cfg.Author()
	return codehost.Person{Name: name, Email: address}
}
