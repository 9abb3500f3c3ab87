package service

import (
	"context"
	"net/url"

	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
	"yardmaster/internal/web"
)

type placeIn struct {
	Path string `json:"path" maxLength:"2000" example:"tasks" doc:"what the dashboard shows"`
	Mode string `json:",omitempty" header:"Sec-Fetch-Mode" maxLength:"100" doc:"navigate: a browser opens the page"`
	Tag  string `json:",omitempty" header:"If-None-Match" doc:"the ETag of what the caller has: 304 if that is still the answer"`
}

type fileIn struct {
	Name string `json:"name" maxLength:"200" example:"LICENSES.txt" doc:"name of the file"`
	Tag  string `json:",omitempty" header:"If-None-Match" doc:"the ETag of what the caller has: 304 if that is still the answer"`
}

// dashboard answers every address of the dashboard with its one page. A browser in which nobody
// is signed in is sent to the page where one signs in, so that nothing on the way there is refused.
func (s *Service) dashboard(ctx context.Context, in placeIn) (*op.Asset, error) {
	if !s.Dashboard {
		return nil, fault.Missing("page")
	}
	if op.RequestOf(ctx).Bare && in.Mode == "navigate" {
		back := url.URL{Path: "/ui/" + in.Path, RawQuery: op.RequestOf(ctx).Query}
		return &op.Asset{To: "/login?" + url.Values{"return_to": {back.String()}}.Encode()}, nil
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
