package app

import (
	"context"

	"yardmaster/internal/codehost"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/fault"
)

// maker makes the connections to code hosts besides the built-in one.
func (a *App) maker() connection.Maker { return noMaker{} }

var errNoHosts = fault.New(fault.Unavailable, "no-code-hosts", "This server knows no code host besides its own.")

// noMaker knows no code host.
type noMaker struct{}

func (noMaker) Name(string) (string, error)          { return "", errNoHosts }
func (noMaker) Permissions() []connection.Permission { return nil }
func (noMaker) Form(string, string, string, connection.Switches) (action, manifest string, err error) {
	return "", "", errNoHosts
}

func (noMaker) Convert(context.Context, string, string) (connection.App, error) {
	return connection.App{}, errNoHosts
}

func (noMaker) Connect(string, string, connection.App) (codehost.Sides, error) {
	return codehost.Sides{}, errNoHosts
}
func (noMaker) InstallAddress(string, connection.App) string { return "" }
