package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
)

var readMetadata = permissions{"metadata": "read"}

// wireRule is one active rule of a branch.
type wireRule struct {
	Type       string `json:"type"`
	Parameters struct {
		Checks []struct {
			Context       string `json:"context"`
			IntegrationID int64  `json:"integration_id"`
		} `json:"required_status_checks"`
		Strict    bool     `json:"strict_required_status_checks_policy"`
		Approvals int      `json:"required_approving_review_count"`
		LastPush  bool     `json:"require_last_push_approval"`
		Methods   []string `json:"allowed_merge_methods"`
	} `json:"parameters"`
}

// BranchRules implements codehost.Forge. It reads the active rulesets, the checks of
// classic protection (the rest of which only an administrator may read) and the
// methods of the repository; a tag is the tags of the three answers.
func (h *Host) BranchRules(
	ctx context.Context, r codehost.Repo, branch string, t codehost.Tag,
) (codehost.BranchRules, codehost.Tag, error) {
	if !codehost.ValidBranch(branch) {
		return codehost.BranchRules{}, "", codehost.ErrNotFound
	}
	was := strings.Split(string(t), tagSeparator)
	if len(was) != 3 {
		was = nil
	}
	for {
		tag := func(i int) codehost.Tag {
			if was == nil {
				return ""
			}
			return codehost.Tag(was[i])
		}
		var rules []wireRule
		var of struct {
			Protection struct {
				Required struct {
					Contexts []string `json:"contexts"`
					Checks   []struct {
						Context string `json:"context"`
						AppID   int64  `json:"app_id"`
					} `json:"checks"`
				} `json:"required_status_checks"`
			} `json:"protection"`
		}
		var repo wireRepo
		now := make([]string, 3)
		got, err := list(ctx, h, r, call{sub: "/rules/branches/" + refPath(branch), tag: tag(0), need: readMetadata},
			func(page []wireRule) bool { rules = append(rules, page...); return true })
		now[0] = string(got)
		errs := []error{err}
		re, err := h.do(ctx, r, call{
			method: http.MethodGet, sub: "/branches/" + refPath(branch), tag: tag(1), need: permissions{"contents": "read"},
		}, &of)
		now[1], errs = string(re.tag), append(errs, err)
		re, err = h.do(ctx, r, call{method: http.MethodGet, tag: tag(2), need: permissions{"contents": "write"}}, &repo)
		if _, forbidden := errors.AsType[*codehost.ForbiddenError](err); forbidden {
			re, err = reply{}, nil // who may not merge need not know the methods
		}
		now[2], errs = string(re.tag), append(errs, err)
		same := 0
		for _, err := range errs {
			switch {
			case errors.Is(err, codehost.ErrNotModified):
				same++
			case err != nil:
				return codehost.BranchRules{}, "", err
			}
		}
		if same == len(errs) {
			return codehost.BranchRules{}, "", codehost.ErrNotModified
		}
		if same > 0 { // one has changed: all are needed
			was = nil
			continue
		}
		out := branchRules(rules)
		for _, c := range of.Protection.Required.Checks {
			out.Required = append(out.Required, required(c.Context, c.AppID))
		}
		for _, name := range of.Protection.Required.Contexts {
			if !slices.ContainsFunc(out.Required, func(c codehost.RequiredCheck) bool { return c.Name == name }) {
				out.Required = append(out.Required, required(name, 0))
			}
		}
		out.Methods = slices.DeleteFunc(out.Methods, func(m codehost.Method) bool {
			return m == codehost.MethodMerge && repo.MergeCommit != nil && !*repo.MergeCommit ||
				m == codehost.MethodSquash && repo.Squash != nil && !*repo.Squash
		})
		if slices.Contains(now, "") {
			return out, "", nil
		}
		return out, codehost.Tag(strings.Join(now, tagSeparator)), nil
	}
}

// tagSeparator stands between the tags of several answers.
const tagSeparator = " | "

func required(name string, app int64) codehost.RequiredCheck {
	c := codehost.RequiredCheck{Name: name}
	if app > 0 { // GitHub writes -1 for any
		c.Source = number(app)
	}
	return c
}

func branchRules(rules []wireRule) codehost.BranchRules {
	out := codehost.BranchRules{Methods: []codehost.Method{codehost.MethodMerge, codehost.MethodSquash}}
	for _, w := range rules {
		switch w.Type {
		case "required_status_checks":
			out.Strict = out.Strict || w.Parameters.Strict
			for _, c := range w.Parameters.Checks {
				out.Required = append(out.Required, required(c.Context, c.IntegrationID))
			}
		case "pull_request":
			out.Approvals = max(out.Approvals, w.Parameters.Approvals)
			out.LastPush = out.LastPush || w.Parameters.LastPush
			if len(w.Parameters.Methods) > 0 {
				out.Methods = slices.DeleteFunc(out.Methods, func(m codehost.Method) bool {
					return !slices.Contains(w.Parameters.Methods, string(m))
				})
			}
		case "required_linear_history":
			out.Methods = slices.DeleteFunc(out.Methods, func(m codehost.Method) bool { return m == codehost.MethodMerge })
		case "merge_queue":
			out.Queue = true
		}
	}
	return out
}

// Permission implements codehost.Forge.
func (h *Host) Permission(ctx context.Context, r codehost.Repo, login string) (codehost.Permission, error) {
	var got struct {
		Permission string `json:"permission"`
		Role       string `json:"role_name"`
	}
	err := h.get(ctx, r, readMetadata, "/collaborators/"+url.PathEscape(login)+"/permission", &got)
	if errors.Is(err, codehost.ErrNotFound) {
		if _, failed := h.Info(ctx, r); failed != nil {
			return codehost.PermitNone, failed
		}
		return codehost.PermitNone, nil // there is no such person
	}
	if err != nil {
		return codehost.PermitNone, err
	}
	of := map[string]codehost.Permission{
		"read": codehost.PermitRead, "triage": codehost.PermitTriage, "write": codehost.PermitWrite,
		"maintain": codehost.PermitMaintain, "admin": codehost.PermitAdmin,
	}
	p, known := of[got.Role]
	if !known { // a role that the organisation has made
		p = of[got.Permission]
	}
	return p, nil
}

// CreateRepo implements codehost.Forge. An App makes repositories of organisations
// alone. One of the name that is as old as once, has no content, and is described as n
// was made by a call whose answer was lost. Without a once none is taken for such.
func (h *Host) CreateRepo(ctx context.Context, owner string, once codehost.Once, n codehost.NewRepo) (codehost.Repo, error) {
	r := codehost.Repo{Host: h.cfg.Name, Owner: owner, Name: n.Name}
	if err := r.Validate(); err != nil {
		return codehost.Repo{}, err
	}
	if !h.cfg.Administration {
		return codehost.Repo{}, &codehost.ForbiddenError{Permission: "administration: write"}
	}
	inst, err := h.installationAt(ctx, owner)
	if err != nil {
		return codehost.Repo{}, err
	}
	if n.Installation != "" && inst.ID != n.Installation {
		return codehost.Repo{}, codehost.ErrGone
	}
	if inst.OwnerKind != "Organization" {
		return codehost.Repo{}, codehost.ErrCannot
	}
	id, err := strconv.ParseInt(inst.ID, 10, 64)
	if err != nil {
		return codehost.Repo{}, fmt.Errorf("the installation %q: %w", inst.ID, err)
	}
	need := permissions{"administration": "write"}
	tok, _, err := h.mint(ctx, id, codehost.Repo{}, need)
	if err != nil {
		return codehost.Repo{}, err
	}
	var w wireRepo
	_, err = h.send(ctx, request{
		method: http.MethodPost, path: "/orgs/" + owner + "/repos", need: need, content: true,
		auth: credential{"Bearer " + tok, payer(id)},
		body: map[string]any{"name": n.Name, "description": n.Description, "private": n.Private},
	}, &w)
	if err == nil {
		return h.repo(w), nil
	}
	switch e, final := refused(err, http.StatusUnprocessableEntity, http.StatusForbidden); {
	case !final:
		return codehost.Repo{}, fmt.Errorf("make the repository %s: %w", r, err)
	case !e.says("already exists"): // such as a plan or a rule of the organisation
		return codehost.Repo{}, errors.Join(&codehost.BlockedError{Missing: append([]string{e.Message}, e.Errors...)}, err)
	}
	if from := since(once); !from.IsZero() {
		// GitHub does not say who made a repository, so its time has to tell more than
		// that of other objects: GitHub refuses the App if its clock is a minute ahead.
		from = from.Add(onceSkew - 2*clockSkew)
		err := h.get(ctx, r, readMetadata, "", &w)
		if errors.Is(err, codehost.ErrGone) || errors.Is(err, codehost.ErrNotFound) {
			return codehost.Repo{}, codehost.ErrExists.Because(err) // the owner keeps it from the App
		}
		if err != nil {
			return codehost.Repo{}, err
		}
		if info, err := h.Info(ctx, h.repo(w)); err != nil {
			return codehost.Repo{}, err
		} else if info.Empty && w.CreatedAt.After(from) && w.Description == n.Description && w.Private == n.Private {
			return info.Repo, nil
		}
	}
	return codehost.Repo{}, codehost.ErrExists.Because(err)
}

// installationAt is the installation of an owner. It fails with codehost.ErrGone if
// there is none, or it is suspended.
func (h *Host) installationAt(ctx context.Context, owner string) (codehost.Installation, error) {
	cursor := ""
	for {
		found, next, err := h.Installations(ctx, cursor)
		if err != nil {
			return codehost.Installation{}, err
		}
		for _, i := range found {
			if strings.EqualFold(i.Owner.Login, owner) && !i.Suspended {
				return i, nil
			}
		}
		if cursor = next; cursor == "" {
			return codehost.Installation{}, codehost.ErrGone
		}
	}
}
