package task_test

import "testing"

func TestLabels(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		list := func(query string) (ids []string) {
			for _, row := range f.call("acme", "GET", "/v1/tasks?"+query, nil, 200)["data"].([]any) {
				ids = append(ids, row.(object)["id"].(string))
			}
			return ids
		}
		first := f.create(object{"labels": object{"area": "auth", "who": "a=b"}})
		f.create(nil)
		second := f.create(object{"labels": object{"area": "auth"}, "priority": 1})
		f.create(object{"labels": object{"area": "docs"}})
		if got := list("filter=label:area=auth"); len(got) != 2 || got[0] != second || got[1] != first {
			f.t.Errorf("area=auth: %v", got)
		}
		if got := list("filter=label:who=a=b"); len(got) != 1 || got[0] != first {
			f.t.Errorf("who=a=b: %v", got)
		}
		if got := list("filter=label:area=none"); len(got) != 0 {
			f.t.Errorf("area=none: %v", got)
		}
		page := f.call("acme", "GET", "/v1/tasks?filter=label:area=auth&per_page=1", nil, 200)
		if got := list("filter=label:area=auth&per_page=1&cursor=" + page["next_cursor"].(string)); len(got) != 1 || got[0] != first {
			f.t.Errorf("the second page: %v", got)
		}
		if got := f.call("rival", "GET", "/v1/tasks?filter=label:area=auth", nil, 200)["data"].([]any); len(got) != 0 {
			f.t.Errorf("another account sees %v", got)
		}
		f.refused("POST", "/v1/tasks", job(object{"labels": object{"a=b": "c"}}), 400, "invalid")
	})
}
