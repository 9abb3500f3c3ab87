package pull

import "testing"

func TestGenerated(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"go.sum": true, "web/package-lock.json": true, "web/app.min.js": true, "api/v1/task.pb.go": true, "vendor/x/y.go": true,
		"a/node_modules/b/index.js": true, "dist/app.js": true,
		"README": false, "vendor": false, "go.mod": false, "lock/yarn.lock.go": false, "distance/a.go": false, "x/pb.go": false,
	} {
		if generated(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
}
