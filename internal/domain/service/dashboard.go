package service

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/web"
)

type placeIn struct {
	Path string `json:"path" maxLength:"2000" example:"tasks" doc:"what the dashboard shows"`
	Tag  string `json:",omitempty" header:"If-None-Match" doc:"the ETag of what the caller has: 304 if that is still the answer"`
}

type fileIn struct {
	Name string `json:"name" maxLength:"200" example:"LICENSES.txt" doc:"name of the file"`
	Tag  string `json:",omitempty" header:"If-None-Match" doc:"the ETag of what the caller has: 304 if that is still the answer"`
}

// dashboard answers every address of the dashboard with its one page.
func (s *Service) dashboard(context.Context, placeIn) (*op.Asset, error) {
	if !s.Dashboard {
		return nil, fault.Missing("page")
	}
	b, err := web.Dashboard()
	if err != nil {
		return nil, err
	}
	return b.Page, nil
}

// dashboardFile answers what the pages of the server load also where there is no
// dashboard.
func (s *Service) dashboardFile(_ context.Context, in fileIn) (*op.Asset, error) {
	if f := web.File(in.Name); f != nil {
		return f, nil
	}
	if !s.Dashboard {
		return nil, fault.Missing("file")
	}
	if in.Name == callsName {
		return s.calls()
	}
	b, err := web.Dashboard()
	if err != nil {
		return nil, err
	}
	if f := b.Files[in.Name]; f != nil {
		return f, nil
	}
	return nil, fault.Missing("file")
}
